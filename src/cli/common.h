/* What the commands share: exit codes, messages, the parsing of options, and the URL of the
 * coordinator.  Called by the main thread. */
#ifndef HF_CLI_COMMON_H
#define HF_CLI_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "holdfast.h"

/* The main function of each command: argv[0] is the command's name, the result the process's exit
 * code. */
int cli_run(int argc, char **argv);
int cli_elect(int argc, char **argv);
int cli_lock(int argc, char **argv);
int cli_drivers(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_fence(int argc, char **argv);
int cli_event(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_hold(int argc, char **argv);
int cli_waitlist(int argc, char **argv);
int cli_booking(int argc, char **argv);
int cli_cell(int argc, char **argv);
int cli_refund(int argc, char **argv);
int cli_notification(int argc, char **argv);
int cli_audit(int argc, char **argv);
int cli_backup(int argc, char **argv);
int cli_restore(int argc, char **argv);
int cli_sandbox(int argc, char **argv);

/* The lines of a usage message about the URLs of coordinators. */
#define CLI_LOCK_URLS                                                                              \
    "A URL is sqlite:PATH, postgres://HOST/DATABASE, redis://HOST, rediss://HOST,\n"               \
    "redis+sentinel://HOSTS/NAME, redlock://HOSTS, etcd://HOSTS, zookeeper://HOSTS or\n"           \
    "holdfast://HOSTS (the lock service of holdfastd); `holdfast drivers` says more.\n"

enum cli_exit {
    EXIT_BAD_USAGE = 64,
    EXIT_NO_BACK_END = 69,
    EXIT_NOT_ACQUIRED = 75,
    EXIT_LOST = 76,
    EXIT_NOT_RUNNABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* The exit code for the result of a library call. */
int cli_exit_code(enum hf_result result);
/* Writes "holdfast run: ..." and a newline to stderr, without characters that a terminal would
 * obey. */
__attribute__((format(printf, 2, 3))) void cli_say(const char *command, const char *fmt, ...);
/* Writes what is wrong with the command line, and where help is, to stderr.  Returns
 * EXIT_BAD_USAGE.
 */
__attribute__((format(printf, 2, 3))) int cli_misused(const char *command, const char *fmt, ...);
/* The same for a word that is none of these, such as a verb; NULL: there is no word. */
int cli_unknown(const char *command, const char *kind, const char *word, const char *const *words,
                size_t n);
/* The same for a ledger that neither the command line nor the environment names. */
int cli_no_ledger(const char *command);
/* Writes what went wrong to stderr and returns the exit code for it. */
int cli_fail(const char *command, const struct hf_fault *fault);

/* For on_outage, with the command's name as ctx: writes a message to stderr. */
void cli_outage(const struct hf_fault *why, void *command);

/* What the value of an option is, and so what `to` points to. */
enum cli_kind {
    CLI_TRUE,     /* a bool; the option has no value */
    CLI_TEXT,     /* a const char *, which points into argv */
    CLI_SECRET,   /* a char *, for free(); the password in argv is blanked */
    CLI_INT,      /* an int, from `least` to `most` */
    CLI_INT64,    /* an int64_t, from `least` to `most` */
    CLI_DURATION, /* an int64_t, of at least `least` milliseconds */
    CLI_OWN,      /* whatever `take` makes of the value */
    CLI_OWN_TRUE, /* the same; the option has no value */
};
struct cli_option {
    const char *name; /* without its dashes; a single letter is a short option */
    enum cli_kind kind;
    void *to;
    int64_t least, most;
    bool (*take)(void *to, char *value); /* returns false, with a message, if it is wrong */
};
/* Reads the options with getopt_long; argv[optind] is the first operand afterwards.  The table ends
 * with a zeroed one; each command has --help and -h besides.  Returns -1, or the exit code with
 * which to end: after a message if an option is wrong, and after --help, which prints `usage`
 * unless it is NULL. */
int cli_options(const char *command, int argc, char **argv, const struct cli_option *table,
                const char *usage);
/* Moves options that stand before the first operand, a command or a verb, behind it.  Does nothing
 * if one of them is not in the table. */
void cli_operand_first(int argc, char **argv, const struct cli_option *table);

/* Reads a duration (base/duration.h) that is at least `least_ms`.  Returns false, with a message,
 * if `text` is none. */
bool cli_duration(const char *command, const char *option, const char *text, int64_t least_ms,
                  int64_t *ret_ms);
/* The same for a whole number from `least` to `most`. */
bool cli_integer(const char *command, const char *option, const char *text, int64_t least,
                 int64_t most, int64_t *ret);

/* Returns `url`, which the command line gave, or HOLDFAST_LOCK_URL if it is NULL.  Returns NULL,
 * with a message, if there is neither. */
const char *cli_url(const char *command, const char *url);
/* What the driver of this URL declares; NULL if there is none. */
const struct hf_driver_info *cli_driver(const char *url);
/* Returns a copy of an argument, for free(), and blanks the password in the argument, where ps
 * shows it. */
char *cli_take_secret(char *argument);
/* Writes user, host and pid: "ann@web1 4711". */
void cli_default_label(char out[129]);
/* Returns whether the coordinator is one that no other process can reach. */
bool cli_is_memory(const char *url);
/* The time on CLOCK_BOOTTIME, which deadlines refer to. */
int64_t cli_now_ms(void);
/* Writes a time as people say it: "850 ms", "12 s", "3 min", "5 h", "2 d".  Returns `out`. */
const char *cli_rough_time(char out[32], int64_t ms);
/* Writes all of `b` to stdout, flushes it and frees `b`.  Returns false if it cannot be written. */
bool cli_print(struct buf *b);

#endif
