/* The log: one line per occurrence, key=value, to stderr: `ts=... level=info msg="..." key=value
 * ...`. Values with spaces, quotes or control characters are quoted and escaped, so that an
 * occurrence never takes two lines.  Callers log route templates and integer keys, never ids, which
 * are secrets. Thread-safe: each line is one write(2). */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

void log_set_level(enum log_level level);
bool log_parse_level(const char *text, enum log_level *ret);
bool log_enabled(enum log_level level);

/* Takes pairs of key and value, both strings, ended by NULL:
 * log_write(LOG_WARN, "commit failed", "why", err.msg, NULL). */
__attribute__((sentinel)) void log_write(enum log_level level, const char *msg, ...);

/* The text of a number for log_write, in a buffer of the caller: LOG_INT(n). */
#define LOG_INT(n) (log_int((char[24]){0}, (long long)(n)))
const char *log_int(char out[24], long long n);

#endif
