/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.  Pure
 * functions. */
#ifndef HF_BASE_UTF8_H
#define HF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the character at `text`, of which `left` bytes may be read; 0 if there is
 * no valid character. */
size_t utf8_char_len(const char *text, size_t left);
/* The length of the longest valid prefix. */
size_t utf8_valid_len(const char *text, size_t len);
/* How many characters the text has; it must be valid. */
size_t utf8_chars(const char *text, size_t len);

static inline bool utf8_is_valid(const char *text, size_t len)
{
    return utf8_valid_len(text, len) == len;
}

#endif
