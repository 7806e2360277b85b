/* Outside ids to and from text, once or twice a request, on HTTP threads and the worker.
 * Pure functions.
 *
 *   hold_ 00000000001 0aZ...        key:    11 digits, at most INT64_MAX
 *                                   secret: 17 digits of one 96-bit number, big-endian
 *
 * A secret is 7 high and 10 low digits, so that only one 128-bit division is ever made and both
 * halves run in 64 bits.  Every value has one text and parsing accepts no other. */
#include "base/id.h"

#include <string.h>

#include "base/status.h"

#define KEY_DIGITS 11
#define HIGH_DIGITS 7
#define LOW_DIGITS 10
#define POW_62_10 839299365868340224u /* 62^LOW_DIGITS */

_Static_assert(KEY_DIGITS + HIGH_DIGITS + LOW_DIGITS == ID_BODY_LEN, "the body is its digits");

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* 1 + the digit's value; 0: not a digit. */
static const uint8_t values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['I'] = 19, ['J'] = 20, ['K'] = 21, ['L'] = 22, ['M'] = 23, ['N'] = 24,
    ['O'] = 25, ['P'] = 26, ['Q'] = 27, ['R'] = 28, ['S'] = 29, ['T'] = 30, ['U'] = 31, ['V'] = 32,
    ['W'] = 33, ['X'] = 34, ['Y'] = 35, ['Z'] = 36, ['a'] = 37, ['b'] = 38, ['c'] = 39, ['d'] = 40,
    ['e'] = 41, ['f'] = 42, ['g'] = 43, ['h'] = 44, ['i'] = 45, ['j'] = 46, ['k'] = 47, ['l'] = 48,
    ['m'] = 49, ['n'] = 50, ['o'] = 51, ['p'] = 52, ['q'] = 53, ['r'] = 54, ['s'] = 55, ['t'] = 56,
    ['u'] = 57, ['v'] = 58, ['w'] = 59, ['x'] = 60, ['y'] = 61, ['z'] = 62,
};

static char *put_digits(char *out, int n, uint64_t value)
{
    for (int i = n; i-- > 0; value /= 62)
        out[i] = alphabet[value % 62];
    return out + n;
}

/* At most 10 digits, so that no sum overflows. */
static bool take_digits(const char *text, int n, uint64_t *ret)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        unsigned value = values[(uint8_t)text[i]];
        if (value == 0)
            return false;
        sum = sum * 62 + value - 1;
    }
    *ret = sum;
    return true;
}

size_t id_format(char out[ID_TEXT_SIZE], const char *prefix, const struct id *id)
{
    size_t prefix_len = strlen(prefix);
    hf_check(id->key > 0 && prefix_len + ID_BODY_LEN < ID_TEXT_SIZE);
    unsigned __int128 secret = 0;
    for (int i = 0; i < ID_SECRET_SIZE; i++)
        secret = secret << 8 | id->secret[i];
    uint64_t high = (uint64_t)(secret / POW_62_10);
    uint64_t low = (uint64_t)secret - high * POW_62_10;

    memcpy(out, prefix, prefix_len);
    char *end = put_digits(out + prefix_len, KEY_DIGITS, (uint64_t)id->key);
    end = put_digits(end, HIGH_DIGITS, high);
    end = put_digits(end, LOW_DIGITS, low);
    *end = '\0';
    return (size_t)(end - out);
}

bool id_parse(const char *text, size_t len, const char *prefix, struct id *ret)
{
    size_t prefix_len = strlen(prefix);
    if (len != prefix_len + ID_BODY_LEN || memcmp(text, prefix, prefix_len) != 0)
        return false;
    const char *body = text + prefix_len;
    uint64_t first, last, high, low;
    if (!take_digits(body, KEY_DIGITS - 1, &first) ||
        !take_digits(body + KEY_DIGITS - 1, 1, &last) ||
        !take_digits(body + KEY_DIGITS, HIGH_DIGITS, &high) ||
        !take_digits(body + KEY_DIGITS + HIGH_DIGITS, LOW_DIGITS, &low))
        return false;

    unsigned __int128 key = (unsigned __int128)first * 62 + last;
    unsigned __int128 secret = (unsigned __int128)high * POW_62_10 + low;
    if (key == 0 || key > INT64_MAX || secret >> (8 * ID_SECRET_SIZE) != 0)
        return false;
    ret->key = (int64_t)key;
    for (int i = ID_SECRET_SIZE; i-- > 0; secret >>= 8)
        ret->secret[i] = (uint8_t)secret;
    return true;
}

bool id_secret_equal(const uint8_t a[ID_SECRET_SIZE], const uint8_t b[ID_SECRET_SIZE])
{
    unsigned different = 0;
    for (int i = 0; i < ID_SECRET_SIZE; i++)
        different |= (unsigned)(a[i] ^ b[i]);
    return different == 0;
}
