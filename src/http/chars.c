/* See chars.h.  A constant; any thread.
 *
 * Targets are read more generously than RFC 3986 writes them: browsers leave characters such as `|`
 * and `"` as they are, and nothing here gives those a meaning.  A `#` would begin a fragment, which
 * is never sent, so one program might cut the path there and another not. */
#include "http/chars.h"

enum {
    ANY = CHAR_TOKEN | CHAR_VALUE | CHAR_TARGET | CHAR_HOST,
    HEX_LETTER = ANY | CHAR_IPV6,
    DIGIT = HEX_LETTER | CHAR_DIGIT,
    TOKEN_ONLY = CHAR_TOKEN | CHAR_VALUE,
    NOT_TOKEN = CHAR_VALUE | CHAR_TARGET | CHAR_HOST,
    NOT_HOST = CHAR_TOKEN | CHAR_VALUE | CHAR_TARGET,
    TEXT = CHAR_VALUE | CHAR_TARGET
};

const uint8_t char_classes[256] = {
    ['\t'] = CHAR_VALUE,
    [' '] = CHAR_VALUE,
    ['!'] = ANY,
    ['"'] = TEXT,
    ['#'] = TOKEN_ONLY,
    ['$'] = ANY,
    ['%'] = ANY,
    ['&'] = ANY,
    ['\''] = ANY,
    ['('] = NOT_TOKEN,
    [')'] = NOT_TOKEN,
    ['*'] = ANY,
    ['+'] = ANY,
    [','] = NOT_TOKEN,
    ['-'] = ANY,
    ['.'] = ANY | CHAR_IPV6,
    ['/'] = TEXT,
    ['0' ... '9'] = DIGIT,
    [':'] = TEXT | CHAR_IPV6,
    [';'] = NOT_TOKEN,
    ['<'] = TEXT,
    ['='] = NOT_TOKEN,
    ['>'] = TEXT,
    ['?'] = TEXT,
    ['@'] = TEXT,
    ['A' ... 'F'] = HEX_LETTER,
    ['G' ... 'Z'] = ANY,
    ['['] = TEXT,
    ['\\'] = TEXT,
    [']'] = TEXT,
    ['^'] = NOT_HOST,
    ['_'] = ANY,
    ['`'] = NOT_HOST,
    ['a' ... 'f'] = HEX_LETTER,
    ['g' ... 'z'] = ANY,
    ['{'] = TEXT,
    ['|'] = NOT_HOST,
    ['}'] = TEXT,
    ['~'] = ANY,
    [0x80 ... 0xff] = CHAR_VALUE,
};
