/* The options of holdfastd: flags, and their twins in the environment and in the file of settings.
 * A value that makes no sense ends the program with a message and EXIT_USAGE.  On the main thread.
 */
#ifndef HF_SETUP_OPTIONS_H
#define HF_SETUP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/settings.h"
#include "base/status.h"

/* Texts as they were given; NULL: not given.  A switch that is on is "1". */
struct options {
    const char *stream_listen, *tls_cert, *tls_key;
    const char *listen, *data, *ledger, *http_threads, *queue_max, *log_level, *demo;
    const char *answer_memory_max;
    const char *admin_key_file, *seller_key_file, *public_holds, *public_seats_max, *hold_rate;
    const char *address_connections_max, *address_streams_max;
    const char *trusted_proxy, *host, *cors_origin, *request_log;
    const char *gate, *reconcile_every, *keep, *keep_holds, *event_idle, *event_memory_max,
        *env_file;
    const char *drain_delay, *pages, *brand, *core_dumps;
    const char *payments, *stripe_api, *capture, *payments_rate, *notify, *notify_events;
    const char *public_url, *sandbox_listen, *sandbox_public;
    const char *journal, *journal_may_lose, *advertise, *cell_timeout, *sessions_max;
};

/* The options as settings and arguments have them.  At a mistake in the arguments the program ends;
 * there is none when they are read again. */
HF_MUST_USE bool options_read(const struct settings *settings, char **argv, struct options *ret,
                              enum log_level *ret_level, struct hf_err *err);

_Noreturn void usage_error(const char *what, const char *detail);
/* Readers of one value; `name` is the flag's, without its dashes. */
long option_number(const char *text, long min, long max, const char *name);
bool option_is_on(const char *text, const char *name);
int64_t option_duration_ms(const char *text, const char *flag);
/* In bytes. */
size_t option_size(const char *text, size_t min, const char *flag);

/* A URL without what may be a password: the part before the @ of a host, and the part after a ?.
 * Where an @ comes later it may belong to a password that is not escaped, so nothing is shown. */
const char *option_shown_url(const char *url, char *ret, size_t size);

#endif
