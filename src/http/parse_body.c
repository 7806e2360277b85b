/* See parse.h.  The body of a request: a length, or chunks with their trailers (RFC 9112, 7.1).  No
 * state of its own; any thread.
 *
 *   length:  DATA
 *   chunks:  DIGITS [EXTENSION] LINE_LF  CHUNK CHUNK_CR CHUNK_LF  DIGITS ...
 *            and after a chunk of length 0:  [TRAILER NAME VALUE VALUE_LF] ... TRAILER LAST_LF
 *
 * Data is passed on in pieces as large as they come; all else is read byte by byte.  White space
 * between a chunk's length and its extensions is refused: nobody sends it, and programs differ in
 * what they make of it. */
#include "http/parse.h"

#include "base/hex.h"
#include "http/chars.h"

enum {
    DATA,
    CHUNK,
    DIGITS,    /* of a chunk's length */
    EXTENSION, /* ignored */
    LINE_LF,   /* after a chunk's length */
    CHUNK_CR,
    CHUNK_LF,
    TRAILER, /* at the beginning of a line */
    NAME,
    VALUE,
    VALUE_LF,
    LAST_LF
};

bool body_begin(struct body *b, const struct head *h)
{
    *b = (struct body){.state = h->chunked ? DIGITS : DATA, .left = h->length};
    return h->chunked || h->length > 0;
}

static enum parse refuse(struct body *b, const struct problem *problem, const char *detail)
{
    b->refusal = (struct refusal){.problem = problem, .detail = detail};
    return PARSE_REFUSED;
}

static enum parse malformed(struct body *b, const char *detail)
{
    return refuse(b, &problem_invalid_request, detail);
}

static enum parse go(struct body *b, uint8_t state)
{
    b->state = state;
    return PARSE_MORE;
}

static enum parse expect(struct body *b, bool found, uint8_t next)
{
    return found ? go(b, next) : malformed(b, "A line of a chunked body must end in CR and LF.");
}

static enum parse read_digit(struct body *b, char c)
{
    int digit = hex_digit(c);
    if (digit >= 0 && b->n_digits < CHUNK_DIGITS_MAX) {
        b->n_digits++;
        b->left = b->left * 16 + (unsigned)digit;
        return PARSE_MORE;
    }
    if (b->n_digits > 0 && c == '\r')
        return go(b, LINE_LF);
    if (b->n_digits > 0 && c == ';')
        return go(b, EXTENSION);
    return malformed(b, "The length of a chunk must be 1 to 16 hexadecimal digits.");
}

static enum parse read_ignored(struct body *b, char c)
{
    if (++b->ignored_len > HEAD_LEN_MAX)
        return refuse(b, &problem_headers_too_large,
                      "Chunk extensions and trailers must have at most 16384 bytes in all.");
    if (b->state == EXTENSION && c == '\r')
        return go(b, LINE_LF);
    if (b->state == VALUE && c == '\r')
        return go(b, VALUE_LF);
    if (b->state == NAME && c == ':')
        return go(b, VALUE);
    if (b->state == TRAILER && c == '\r')
        return go(b, LAST_LF);
    if (!char_is(c, b->state == EXTENSION || b->state == VALUE ? CHAR_VALUE : CHAR_TOKEN))
        return malformed(b, b->state == EXTENSION ? "A chunk extension has a control character."
                            : b->state == VALUE   ? "A trailer has a control character."
                                                  : "The name of a trailer must be a token.");
    if (b->state != TRAILER)
        return PARSE_MORE;
    if (b->n_trailers == FIELDS_MAX)
        return refuse(b, &problem_headers_too_large, "There must be at most 100 trailers.");
    b->n_trailers++;
    return go(b, NAME);
}

static enum parse read_byte(struct body *b, char c)
{
    switch (b->state) {
    case DIGITS:
        return read_digit(b, c);
    case LINE_LF:
        b->n_digits = 0;
        return expect(b, c == '\n', b->left > 0 ? CHUNK : TRAILER);
    case CHUNK_CR:
        return expect(b, c == '\r', CHUNK_LF);
    case CHUNK_LF:
        return expect(b, c == '\n', DIGITS);
    case VALUE_LF:
        return expect(b, c == '\n', TRAILER);
    case LAST_LF:
        return c == '\n' ? PARSE_DONE : expect(b, false, LAST_LF);
    default:
        return read_ignored(b, c);
    }
}

enum parse body_parse(struct body *b, const char *data, size_t len, size_t *ret_used,
                      struct text *ret_part)
{
    size_t used = 0;
    enum parse parse = PARSE_MORE;
    while (used < len && parse == PARSE_MORE && b->state > CHUNK)
        parse = read_byte(b, data[used++]);
    if (parse == PARSE_REFUSED)
        return PARSE_REFUSED;
    struct text part = {.data = data + used, .len = 0};
    if (b->state <= CHUNK) {
        part.len = len - used < b->left ? len - used : (size_t)b->left;
        b->left -= part.len;
        if (b->left == 0 && b->state == DATA)
            parse = PARSE_DONE;
        else if (b->left == 0)
            b->state = CHUNK_CR;
    }
    *ret_used = used + part.len;
    *ret_part = part;
    return parse;
}
