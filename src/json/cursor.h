/* A place in a JSON text, for readers that take a text apart themselves because jansson's tree of it
 * would cost too much: hold_scan (api/hold_parse.h) and rows_cut_init (venue/rows_cut.h).  Pure. */
#ifndef HF_JSON_CURSOR_H
#define HF_JSON_CURSOR_H

#include <stdbool.h>

struct cursor {
    const char *at, *end;
};

static inline void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

/* Skips space and, if it comes next, the wanted character.  Returns false if it does not. */
static inline bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

#endif
