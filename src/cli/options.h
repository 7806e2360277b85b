/* The options of those commands that ask for a lock: run, elect and `lock get`. */
#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include <getopt.h>

#include "cli/monitor.h"
#include "holdfast.h"

struct ask {
    const char *command; /* for messages */
    char *url_given;     /* owned; NULL: none */
    struct hf_options open;
    struct hf_lock_options want;
    char label[129];
    struct ending ending;
    bool has_grace, no_wait, has_retries, has_wait;
    int64_t at_least_ms, pause_ms;
    int not_acquired_code;
    const char *metrics_path, *owner;
    bool json, help;
};

/* Long options' values; the short ones are letters. */
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
    ASK_TIMEOUT,
    ASK_PAUSE,
    ASK_OWNER,
    ASK_JSON,
    ASK_HELP,
};

/* Reads argv with getopt_long and those options; operands are left at argv[optind].  False: a
 * mistake, said so. */
bool ask_parse(struct ask *ask, const char *command, int argc, char **argv,
               const char *short_options, const struct option *options);
/* When a lock granted then is over for --max-hold: later than that by what --on-loss begins before
 * an end, so that the command has its whole time.  The lease outlives it: it was renewed until the
 * end of --max-hold, and the grace is at most half of its TTL. */
int64_t ask_cap_ms(const struct ask *ask, int64_t granted_ms);
void ask_close(struct ask *ask);
/* [options] NAME -- COMMAND...: parse it all.  False: usage was wrong, and said so. */
bool ask_parse_command(struct ask *ask, const char *command, int argc, char **argv,
                       const char *short_options, const struct option *options,
                       const char **ret_name, char ***ret_argv);

#endif
