/* A growable byte buffer with the few appenders that rendering needs.  Not thread-safe; growth
 * doubles, so n appends cost O(n). */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data;
    size_t len, cap;
};

void buf_reserve(struct buf *b, size_t more); /* makes room for `more` bytes past len */
void buf_put(struct buf *b, const void *data, size_t len);
void buf_str(struct buf *b, const char *text);
void buf_char(struct buf *b, char c);
void buf_int(struct buf *b, int64_t value);
/* What buf_int appends, for those who have no buffer: writes it without a NUL and returns its
 * length. */
#define DECIMAL_LEN_MAX 20 /* "-9223372036854775808" */
size_t decimal_write(char *out, int64_t value);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *b, const char *fmt, ...);
/* Appends the text in quotes, escaped as JSON requires; `text` must be UTF-8. */
void buf_json(struct buf *b, const char *text, size_t len);
/* Appends "2026-...Z" in quotes. */
void buf_json_time(struct buf *b, int64_t ms);
/* Appends the text with everything but letters, digits and -._~ percent-encoded. */
void buf_percent(struct buf *b, const char *text);
void buf_trim(struct buf *b);  /* gives back the room past len, of a buffer that is kept */
void buf_close(struct buf *b); /* frees; accepts a zeroed struct; zeroes it */

#define buf_lit(b, literal) buf_put((b), (literal), sizeof(literal) - 1)

#endif
