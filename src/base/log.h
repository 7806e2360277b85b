/* The log: one line per occurrence, key=value, to stderr: `ts=... level=info msg="..." key=value
 * ...`. Values with spaces, quotes or control characters are quoted and escaped, so that an
 * occurrence never takes two lines.  Callers log route templates and integer keys, never ids, which
 * are secrets. Thread-safe: lines do not mix.
 *
 * Between log_start and log_stop a thread writes the lines (log_writer.h), and nothing here waits
 * for the reader of stderr.  Otherwise, as in the command, each line is one write(2). */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

void log_set_level(enum log_level level);
bool log_parse_level(const char *text, enum log_level *ret);
bool log_enabled(enum log_level level);

/* Takes pairs of key and value, both strings, ended by NULL:
 * log_write(LOG_WARN, "commit failed", "why", err.msg, NULL). */
__attribute__((sentinel)) void log_write(enum log_level level, const char *msg, ...);

/* Prints text for people, one or more whole lines, to stdout or stderr; in order with the log. */
__attribute__((format(printf, 2, 3))) void log_print(int fd, const char *fmt, ...);

/* Starts the thread that writes, and opens /dev/null in the place of stdin, stdout and stderr if
 * they are closed, so that no other file gets their numbers.  Signals must be blocked, since it
 * inherits the mask.  Texts of a failed hf_check then leave through it as well. */
HF_MUST_USE bool log_start(struct hf_err *err);
/* Waits until all lines are written, LOG_FLUSH_MS at most. */
void log_flush(void);
/* The same, then ends the thread. */
void log_stop(void);
#define LOG_FLUSH_MS 1000
/* How many lines were lost, since nobody read them or the buffer was full. */
uint64_t log_dropped(void);

/* The text of a number for log_write, in a buffer of the caller: LOG_INT(n). */
#define LOG_INT(n) (log_int((char[24]){0}, (long long)(n)))
const char *log_int(char out[24], long long n);

#endif
