/* See lock_parse.h.  lock_scan accepts a subset of what lock_parse accepts;
 * tests/unit/test_lock_parse.c checks one against the other. */
#include "api/lock_parse.h"

#include <stdio.h>
#include <string.h>

#include "cell/node.h"
#include "json/cursor.h"

#define AT(member) offsetof(struct lock_body, member)

const struct lock_field lock_fields_open[] = {
    {"ttl_ms", LOCK_NUMBER, REQUIRED, CELL_TTL_MIN_MS, CELL_TTL_MAX_MS, AT(ttl_ms)},
    {"label", LOCK_TEXT, NULLABLE, 0, CELL_LABEL_MAX, AT(label)},
    {.name = NULL},
};

const struct lock_field lock_fields_acquire[] = {
    {"session", LOCK_TEXT, REQUIRED, 0, INT64_MAX, AT(session)},
    {"owner", LOCK_TEXT, NULLABLE, 1, 2 * CELL_OWNER_SIZE, AT(owner)},
    {"agent", LOCK_TEXT, NULLABLE, 0, CELL_AGENT_MAX, AT(agent)},
    {"label", LOCK_TEXT, NULLABLE, 0, CELL_LABEL_MAX, AT(label)},
    {"mode", LOCK_TEXT, OPTIONAL, 1, 32, AT(mode)},
    {"slots", LOCK_NUMBER, OPTIONAL, 1, CELL_SLOTS_MAX, AT(slots)},
    {"wait_ms", LOCK_NUMBER, OPTIONAL, 0, NODE_WAIT_MAX_MS, AT(wait_ms)},
    {"claim_ms", LOCK_NUMBER, OPTIONAL, NODE_CLAIM_MIN_MS, NODE_CLAIM_MS, AT(claim_ms)},
    {"claim", LOCK_BOOL, OPTIONAL, 0, 0, AT(claim)},
    {"priority", LOCK_NUMBER, OPTIONAL, -CELL_PRIORITY_MAX, CELL_PRIORITY_MAX, AT(priority)},
    {"delay_ms", LOCK_NUMBER, OPTIONAL, 0, CELL_DELAY_MAX_MS, AT(delay_ms)},
    {"value", LOCK_TEXT, NULLABLE, 1, CELL_VALUE_MAX, AT(value)},
    {"cache", LOCK_BOOL, OPTIONAL, 0, 0, AT(cache)},
    {.name = NULL},
};

const struct lock_field lock_fields_release[] = {
    {"session", LOCK_TEXT, REQUIRED, 0, INT64_MAX, AT(session)},
    {"owner", LOCK_TEXT, REQUIRED, 1, 2 * CELL_OWNER_SIZE, AT(owner)},
    {"fence", LOCK_NUMBER, NULLABLE, 1, INT64_MAX, AT(fence)},
    {.name = NULL},
};

const struct lock_field lock_fields_value[] = {
    {"session", LOCK_TEXT, REQUIRED, 0, INT64_MAX, AT(session)},
    {"owner", LOCK_TEXT, REQUIRED, 1, 2 * CELL_OWNER_SIZE, AT(owner)},
    {"fence", LOCK_NUMBER, REQUIRED, 1, INT64_MAX, AT(fence)},
    {"value", LOCK_TEXT, NULLABLE, 1, CELL_VALUE_MAX, AT(value)},
    {.name = NULL},
};

static void *place_of(struct lock_body *body, const struct lock_field *f)
{
    return (char *)body + f->offset;
}

/* ---- the quick reader ---- */

static bool scan_bool(struct cursor *c, bool *ret)
{
    skip_space(c);
    size_t left = (size_t)(c->end - c->at);
    *ret = left >= 4 && memcmp(c->at, "true", 4) == 0;
    if (!*ret && (left < 5 || memcmp(c->at, "false", 5) != 0))
        return false;
    c->at += *ret ? 4 : 5;
    return true;
}

static bool scan_value(struct cursor *c, const struct lock_field *f, struct lock_body *ret)
{
    void *place = place_of(ret, f);
    if (f->type == LOCK_BOOL)
        return scan_bool(c, place);
    int64_t size;
    if (f->type == LOCK_TEXT) {
        struct text *text = place;
        if (!take_plain_text(c, &text->data, &text->len))
            return false;
        size = (int64_t)text->len;
    } else {
        if (!take_integer(c, place))
            return false;
        size = *(int64_t *)place;
    }
    return size >= f->min && size <= f->max;
}

/* The index of the field in the table; -1: it is not there. */
static int field_index(const struct lock_field *table, const struct text *name)
{
    for (int i = 0; table[i].name; i++)
        if (strlen(table[i].name) == name->len && memcmp(table[i].name, name->data, name->len) == 0)
            return i;
    return -1;
}

static bool has_required(const struct lock_field *table, uint32_t given)
{
    for (int i = 0; table[i].name; i++)
        if (table[i].need == REQUIRED && !(given >> i & 1))
            return false;
    return true;
}

bool lock_scan(const struct buf *body, const struct lock_field *table, struct lock_body *ret)
{
    if (body->len == 0)
        return false;
    struct cursor c = {.at = body->data, .end = body->data + body->len};
    if (!take(&c, '{'))
        return false;
    do {
        struct text name;
        if (!take_plain_text(&c, &name.data, &name.len) || !take(&c, ':'))
            return false;
        int i = field_index(table, &name);
        if (i < 0 || ret->given >> i & 1 || !scan_value(&c, &table[i], ret))
            return false;
        ret->given |= 1u << i;
    } while (take(&c, ','));
    if (!take(&c, '}'))
        return false;
    skip_space(&c);
    return c.at == c.end && has_required(table, ret->given);
}

/* ---- the thorough reader ---- */

static bool parse_text(const struct fields *f, const struct lock_field *field, struct text *ret)
{
    if (!field_text(f, field->name, field->need, (size_t)field->min, (size_t)field->max, &ret->data,
                    &ret->len))
        return false;
    char what[48];
    (void)snprintf(what, sizeof what, "must have at most %lld bytes", (long long)field->max);
    return ret->len <= (size_t)field->max || field_fail(f, field->name, what);
}

static bool parse_field(const struct fields *f, const struct lock_field *field,
                        struct lock_body *ret)
{
    void *place = place_of(ret, field);
    switch (field->type) {
    case LOCK_TEXT:
        return parse_text(f, field, place);
    case LOCK_NUMBER:
        return field_int(f, field->name, field->need, field->min, field->max, place);
    default:
        return field_bool(f, field->name, field->need, place);
    }
}

static bool parse_fields(const struct fields *f, const struct lock_field *table,
                         struct lock_body *ret)
{
    const char *known[16];
    size_t n = 0;
    for (; table[n].name; n++)
        known[n] = table[n].name;
    known[n] = NULL;
    if (!fields_known(f, known))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!parse_field(f, &table[i], ret))
            return false;
        if (json_object_get(f->object, table[i].name))
            ret->given |= 1u << i;
    }
    return true;
}

bool lock_parse(const struct buf *body, const struct lock_field *table, struct lock_body *ret,
                json_t **ret_json, struct hf_err *err)
{
    json_t *json = parse_body(body, false, err);
    if (!json)
        return false;
    struct lock_body read = {0};
    const struct fields f = {.object = json, .path = "", .err = err};
    if (!parse_fields(&f, table, &read)) {
        json_decref(json);
        return false;
    }
    *ret = read;
    *ret_json = json;
    return true;
}
