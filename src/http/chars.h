/* What a byte may be part of in HTTP (RFC 9110, 5.5 and 5.6.2; RFC 3986, 3.2.2), by one table. */
#ifndef HF_HTTP_CHARS_H
#define HF_HTTP_CHARS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHAR_TOKEN = 1,  /* methods and field names */
    CHAR_VALUE = 2,  /* field values: everything but control characters, with HTAB and obs-text */
    CHAR_TARGET = 4, /* request targets: printable ASCII without space and `#` */
    CHAR_HOST = 8,   /* registered names and IPv4 addresses */
    CHAR_IPV6 = 16,  /* between the brackets of an IPv6 address */
    CHAR_DIGIT = 32
};

extern const uint8_t char_classes[256];

static inline bool char_is(char c, int class)
{
    return (char_classes[(unsigned char)c] & class) != 0;
}

/* Returns the first character at or after `text` that is not of the class.  There must be one:
 * the CR that ends a line is of no class. */
static inline const char *chars_skip(const char *text, int class)
{
    while (char_is(*text, class))
        text++;
    return text;
}

#endif
