/* Bytes as lower-case hexadecimal digits.  Pure functions. */
#ifndef HF_BASE_HEX_H
#define HF_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Writes 2 * len digits and a NUL. */
static inline void hex_format(const uint8_t *bytes, size_t len, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * len] = '\0';
}

#endif
