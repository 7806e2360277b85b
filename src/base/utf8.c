/* The one validator of UTF-8; see utf8.h. */
#include "base/utf8.h"

static bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

size_t utf8_char_len(const char *text, size_t left)
{
    const unsigned char *p = (const unsigned char *)text;
    if (left == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (!is_continuation(p[i]))
            return 0;
    bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool is_surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool is_beyond = p[0] == 0xf4 && p[1] > 0x8f;
    return is_overlong || is_surrogate || is_beyond ? 0 : len;
}

size_t utf8_valid_len(const char *text, size_t len)
{
    size_t i = 0;
    for (size_t step; i < len; i += step) {
        step = utf8_char_len(text + i, len - i);
        if (step == 0)
            break;
    }
    return i;
}

size_t utf8_chars(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += !is_continuation((unsigned char)text[i]);
    return n;
}
