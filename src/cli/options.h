/* The options of the commands that ask for a lock: run, elect and lock. */
#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include <getopt.h>

#include "cli/monitor.h"
#include "holdfast.h"

struct ask {
    const char *command; /* the command's name, for messages */
    char *url_given;     /* --lock; owned; NULL if it was not given */
    struct hf_options open;
    struct hf_lock_options want;
    char label[129];
    struct ending ending;
    bool has_grace, no_wait, has_retries, has_wait; /* which options were given */
    int64_t at_least_ms, pause_ms;
    int not_acquired_code; /* -E */
    const char *metrics_path, *metrics_listen, *owner;
    bool json, help, observe;
};

/* The values of long options; short options have their letters. */
enum ask_option {
    ASK_LOCK = 256,
    ASK_TTL,
    ASK_WAIT,
    ASK_RETRY,
    ASK_RETRY_DELAY,
    ASK_SHARED,
    ASK_SLOTS,
    ASK_PRIORITY,
    ASK_MAX_HOLD,
    ASK_AT_LEAST,
    ASK_LABEL,
    ASK_ON_LOSS,
    ASK_GRACE,
    ASK_METRICS_FILE,
    ASK_METRICS_LISTEN,
    ASK_TIMEOUT,
    ASK_PAUSE,
    ASK_OWNER,
    ASK_VALUE,
    ASK_OBSERVE,
    ASK_JSON,
    ASK_HELP,
};

/* Reads argv with getopt_long and these options; argv[optind] is the first operand afterwards.
 * Returns false, with a message, if an option is wrong. */
bool ask_parse(struct ask *ask, const char *command, int argc, char **argv,
               const char *short_options, const struct option *options);
/* The deadline that --max-hold sets for a lock granted at `granted_ms`; INT64_MAX without
 * --max-hold.
 * --on-loss begins before a deadline, so this one is later than --max-hold by that much, and the
 * command has its whole time.  The lease lasts until then: it was renewed until the end of
 * --max-hold, and the grace is at most half of its TTL. */
int64_t ask_cap_ms(const struct ask *ask, int64_t granted_ms);
void ask_close(struct ask *ask);
/* What stands behind the options: [OPTION...] NAME... -- COMMAND... */
struct operands {
    const char *const *names;
    size_t n_names;
    char **command;
};
/* Reads the options and the operands; there are 1 to `names_max` names.  Returns false, with a
 * message, if something is wrong. */
bool ask_parse_command(struct ask *ask, const char *command, int argc, char **argv,
                       const char *short_options, const struct option *options, size_t names_max,
                       struct operands *ret);

#endif
