/* `--metrics-listen`: the metrics of `holdfast run` and `holdfast elect` over HTTP, in Prometheus
 * format, for as long as the process runs.
 *
 * One thread serves one connection at a time, for a second at most, so that a scraper can neither
 * use up the files that the coordinator needs nor hold up the wrapper.  src/http does not serve it:
 * its server raises this process's limit of open files, which the wrapped command would inherit,
 * and takes as many connections as that allows. */
#ifndef HF_CLI_METRICS_LISTEN_H
#define HF_CLI_METRICS_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast.h"

struct metrics_listen;

/* Returns false, with a message, if `text` is neither ADDRESS:PORT, PORT nor a path. */
bool metrics_listen_check(const char *command, const char *text);
/* Listens and starts the thread, in which every signal is blocked that the caller has blocked.
 * Returns NULL for a `text` that is NULL, and, with a message, if it cannot listen; the command
 * runs all the same.  `names` are borrowed. */
struct metrics_listen *metrics_listen_start(const char *command, const char *text,
                                            const char *const *names, size_t n);
/* What the command does now.  The pointers are borrowed until the next call.  All of these accept
 * NULL for `m`. */
void metrics_listen_idle(struct metrics_listen *m);
void metrics_listen_waits(struct metrics_listen *m, const struct hf_locks *locks);
void metrics_listen_holds(struct metrics_listen *m, const struct hf_locks *locks,
                          const struct hf_lock_set *set);
void metrics_listen_stop(struct metrics_listen *m);

#endif
