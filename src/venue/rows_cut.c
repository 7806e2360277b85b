/* See rows_cut.h.  This reader only finds where values end; whether they are right is judged by the
 * readers of what was cut and of what is left.  A name with an escape in it is not recognised: its
 * value is not cut, and is read with the rest. */
#include "venue/rows_cut.h"

#include <string.h>

#include "json/cursor.h"

#define DEPTH_MAX 2000

/* `at` is behind the opening quote. */
static bool skip_string(struct cursor *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\' && ++c->at == c->end)
            return false;
    }
    return false;
}

/* Passes over a whole value.  Brackets are counted, not matched. */
static bool skip_value(struct cursor *c)
{
    int depth = 0;
    skip_space(c);
    const char *start = c->at;
    while (c->at < c->end) {
        char x = *c->at;
        if (x == '"') {
            c->at++;
            if (!skip_string(c))
                return false;
        } else if (x == '{' || x == '[') {
            if (++depth > DEPTH_MAX)
                return false;
            c->at++;
        } else if (x == '}' || x == ']') {
            if (depth == 0)
                break;
            depth--;
            c->at++;
        } else if (x == ',' && depth == 0) {
            break;
        } else {
            c->at++;
            continue;
        }
        if (depth == 0)
            break;
    }
    return depth == 0 && c->at > start;
}

/* Takes a member's name and the colon. */
static bool take_name(struct cursor *c, const char **ret, size_t *ret_len)
{
    if (!take(c, '"'))
        return false;
    *ret = c->at;
    if (!skip_string(c))
        return false;
    *ret_len = (size_t)(c->at - *ret) - 1;
    return take(c, ':');
}

static bool is(const char *name, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

/* Goes through an object, of which `member` passes over each value. */
static bool walk_object(struct rows_cut *cut, struct cursor *c, size_t zone,
                        bool (*member)(struct rows_cut *cut, struct cursor *c, const char *name,
                                       size_t len, size_t zone))
{
    const char *name;
    size_t len;
    if (!take(c, '{'))
        return false;
    if (take(c, '}'))
        return true;
    do {
        if (!take_name(c, &name, &len) || !member(cut, c, name, len, zone))
            return false;
    } while (take(c, ','));
    return take(c, '}');
}

/* The rows of a zone: everything between the brackets is cut. */
static bool cut_rows(struct rows_cut *cut, struct cursor *c, size_t zone)
{
    const char *start = c->at;
    if (take(c, ']'))
        return true;
    do {
        skip_space(c);
        cut->is_too_long = cut->rows.n == ROWS_CUT_MAX;
        if (cut->is_too_long)
            return false;
        struct row_text *row = vec_push(&cut->rows);
        row->text = c->at;
        row->zone = zone;
        if (!skip_value(c))
            return false;
        row->len = (size_t)(c->at - row->text);
    } while (take(c, ','));
    skip_space(c);
    buf_put(&cut->rest, cut->from, (size_t)(start - cut->from));
    cut->from = c->at;
    return take(c, ']');
}

static bool in_zone(struct rows_cut *cut, struct cursor *c, const char *name, size_t len,
                    size_t zone)
{
    if (is(name, len, "rows") && take(c, '['))
        return cut_rows(cut, c, zone);
    return skip_value(c);
}

static bool in_plan(struct rows_cut *cut, struct cursor *c, const char *name, size_t len,
                    size_t zone)
{
    if (!is(name, len, "zones") || !take(c, '['))
        return skip_value(c);
    if (take(c, ']'))
        return true;
    do {
        skip_space(c);
        bool is_object = c->at < c->end && *c->at == '{';
        if (is_object ? !walk_object(cut, c, zone, in_zone) : !skip_value(c))
            return false;
        zone++;
    } while (take(c, ','));
    return take(c, ']');
}

static bool in_body(struct rows_cut *cut, struct cursor *c, const char *name, size_t len,
                    size_t zone)
{
    skip_space(c);
    if (is(name, len, "plan") && c->at < c->end && *c->at == '{')
        return walk_object(cut, c, zone, in_plan);
    return skip_value(c);
}

bool rows_cut_init(struct rows_cut *ret, const struct buf *body)
{
    if (body->len == 0)
        return false;
    struct rows_cut cut = {.from = body->data};
    struct cursor c = {.at = body->data, .end = body->data + body->len};
    bool ok = walk_object(&cut, &c, 0, in_body);
    skip_space(&c);
    if (!ok || c.at != c.end || !cut.rows.n) {
        rows_cut_close(&cut);
        *ret = (struct rows_cut){.is_too_long = cut.is_too_long};
        return false;
    }
    buf_put(&cut.rest, cut.from, (size_t)(c.end - cut.from));
    *ret = cut;
    return true;
}

void rows_cut_close(struct rows_cut *cut)
{
    buf_close(&cut->rest);
    vec_close(&cut->rows);
}
