/* Durations as people write them on a command line or in a setting: 500ms, 30s, 1.5s, 2m30s, 2h,
 * 1d; a bare number is seconds.  Units come in descending order, each at most once.  Pure
 * functions. */
#ifndef HF_BASE_DURATION_H
#define HF_BASE_DURATION_H

#include <stdint.h>

#define DURATION_DAYS_MAX 3660
#define DURATION_MS_MAX (INT64_C(86400000) * DURATION_DAYS_MAX)

/* In milliseconds; -1 if the text is no duration; more than DURATION_MS_MAX if it is too long. */
int64_t duration_parse_ms(const char *text);
/* Writes it exactly, in the largest unit that it is a whole number of: "7 days", "90 s", "1500 ms".
 * Returns `out`. */
#define DURATION_TEXT_SIZE 32
const char *duration_text(char out[DURATION_TEXT_SIZE], int64_t ms);

#endif
