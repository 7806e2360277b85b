/* Ids to and from text, once or twice per request, on HTTP threads and the worker.
 * Pure functions.
 *
 *   hold_ 0 00000 0006j 00 P9MVM caXWH EX8yi
 *         key           secret, one big-endian number of 96 bits
 *
 * Digits go in groups of five from the right: a group fits 32 bits, groups do not wait for one
 * another, and no division is wider than the machine's.  Every id has one text and parsing
 * accepts no other. */
#include "base/id.h"

#include <string.h>

#include "base/status.h"

#define GROUP UINT64_C(916132832) /* 62^5: one more than the largest group */

/* Where the groups start in the body: those of the key, those of the secret. */
enum { K0 = 0, K1 = 1, K2 = 6, S0 = 11, S1 = 13, S2 = 18, S3 = 23 };

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* 1 + the value of the digit; 0: the character is no digit. */
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

static inline void put_group(char *out, int n_digits, uint64_t group)
{
    uint32_t value = (uint32_t)group;
    for (int i = n_digits; i-- > 0; value /= 62)
        out[i] = alphabet[value % 62];
}

/* Sets *bad on a character that is no digit. */
static inline uint64_t take_group(const char *text, int n_digits, bool *bad)
{
    uint32_t sum = 0;
    for (int i = 0; i < n_digits; i++) {
        uint32_t value = values[(uint8_t)text[i]];
        *bad |= value == 0;
        sum = sum * 62 + value - 1;
    }
    return sum;
}

/* Divides the number, three 32-bit limbs with the highest first, by GROUP; returns the remainder.
 */
static inline uint64_t split_group(uint64_t limbs[3])
{
    uint64_t rest = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t part = rest << 32 | limbs[i];
        limbs[i] = part / GROUP;
        rest = part % GROUP;
    }
    return rest;
}

static uint64_t load_be32(const uint8_t *p)
{
    return (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
}

size_t id_format(char out[ID_TEXT_SIZE], const char *prefix, const struct id *id)
{
    size_t prefix_len = strlen(prefix);
    hf_check(id->key > 0 && prefix_len + ID_BODY_LEN < ID_TEXT_SIZE);
    memcpy(out, prefix, prefix_len);
    char *body = out + prefix_len;

    uint64_t key = (uint64_t)id->key;
    put_group(body + K2, 5, key % GROUP);
    put_group(body + K1, 5, key / GROUP % GROUP);
    put_group(body + K0, 1, key / GROUP / GROUP);

    uint64_t limbs[3] = {load_be32(id->secret), load_be32(id->secret + 4),
                         load_be32(id->secret + 8)};
    put_group(body + S3, 5, split_group(limbs));
    put_group(body + S2, 5, split_group(limbs));
    uint64_t high = limbs[1] << 32 | limbs[2]; /* 2^96 / 62^10 is less than 2^37 */
    put_group(body + S1, 5, high % GROUP);
    put_group(body + S0, 2, high / GROUP);
    body[ID_BODY_LEN] = '\0';
    return prefix_len + ID_BODY_LEN;
}

bool id_parse(const char *text, size_t len, const char *prefix, struct id *ret)
{
    size_t prefix_len = strlen(prefix);
    if (len != prefix_len + ID_BODY_LEN || memcmp(text, prefix, prefix_len) != 0)
        return false;
    const char *body = text + prefix_len;
    bool bad = false;
    uint64_t key_high = take_group(body + K0, 1, &bad);
    uint64_t key_low = take_group(body + K1, 5, &bad) * GROUP + take_group(body + K2, 5, &bad);
    uint64_t high = take_group(body + S0, 2, &bad) * GROUP + take_group(body + S1, 5, &bad);
    uint64_t low = take_group(body + S2, 5, &bad) * GROUP + take_group(body + S3, 5, &bad);
    if (bad)
        return false;

    unsigned __int128 key = (unsigned __int128)key_high * (GROUP * GROUP) + key_low;
    unsigned __int128 secret = (unsigned __int128)high * (GROUP * GROUP) + low;
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

int id_order(const void *a, const void *b)
{
    const struct id *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}
