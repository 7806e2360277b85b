/* What the lock commands share: exit codes, durations, which coordinator, what to say of a failure.
 *
 * Each command's main gets argv[0] as its own name and returns the process's exit code. */
#ifndef HF_CLI_COMMON_H
#define HF_CLI_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "holdfast.h"

int cli_run(int argc, char **argv);
int cli_elect(int argc, char **argv);
int cli_lock(int argc, char **argv);
int cli_drivers(int argc, char **argv);
int cli_fence(int argc, char **argv);

enum cli_exit {
    EXIT_BAD_USAGE = 64,
    EXIT_NO_BACK_END = 69,
    EXIT_NOT_ACQUIRED = 75,
    EXIT_LOST = 76,
    EXIT_NOT_RUNNABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* The exit code of a call that ended so. */
int cli_exit_code(enum hf_result result);
/* "holdfast run: ..." on stderr, in one write. */
__attribute__((format(printf, 2, 3))) void cli_say(const char *command, const char *fmt, ...);
/* What went wrong, and its exit code. */
int cli_fail(const char *command, const struct hf_fault *fault);

/* For on_outage, with the command's name: says so on stderr. */
void cli_outage(const struct hf_fault *why, void *command);

struct option;
/* getopt_long, and what is wrong is said in one line: '?'.  `short_options` begins with a colon. */
int cli_option(const char *command, int argc, char **argv, const char *short_options,
               const struct option *options);

/* "500ms", "30s", "1.5m", "2h", "1d", "2m30s" (larger units first), and a bare number is seconds;
 * says so if it cannot be. */
bool cli_duration(const char *command, const char *option, const char *text, int64_t least_ms,
                  int64_t *ret_ms);
bool cli_integer(const char *command, const char *option, const char *text, int64_t least,
                 int64_t most, int64_t *ret);

/* The coordinator: `url` of the command line, else of HOLDFAST_LOCK_URL.  NULL: neither, and that
 * was said. */
const char *cli_url(const char *command, const char *url);
/* A copy of an argument that may have a password in it, which is blanked where ps looks. */
char *cli_take_secret(char *argument);
/* "ann@web1 4711", at most 128 bytes. */
void cli_default_label(char out[129]);
/* A coordinator that no other process can reach. */
bool cli_is_memory(const char *url);
/* CLOCK_BOOTTIME, in which deadlines are. */
int64_t cli_now_ms(void);
/* The bytes to stdout, all of them and flushed; frees `b`.  False: it cannot be written. */
bool cli_print(struct buf *b);

#endif
