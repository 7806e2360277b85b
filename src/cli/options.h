/* The options of the commands that use a lock: run, elect, lock and doctor.  Main thread. */
#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include "cli/monitor.h"
#include "holdfast.h"

struct ask {
    const char *command; /* the command's name, for messages */
    char *url_given;     /* --lock; owned; NULL if it was not given */
    struct hf_options open;
    struct hf_lock_options want;
    char label[129];
    struct ending ending;
    bool no_wait, shared;
    int64_t at_least_ms, pause_ms;
    int not_acquired_code; /* -E */
    const char *metrics_path, *metrics_listen, *owner;
    bool json, help, observe;
};

/* Reads those options whose names are in `names`, with blanks between; argv[optind] is the first
 * operand afterwards.  Returns false, with a message, if an option is wrong. */
bool ask_parse(struct ask *ask, const char *command, int argc, char **argv, const char *names);
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
                       const char *options, size_t names_max, struct operands *ret);

#endif
