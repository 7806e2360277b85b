/* The terms of an event as columns of its row: inserting an event and changing its terms write
 * them, reading an event reads them. */
#include <string.h>

#include "ledger/ledger_internal.h"

/* What a ticket type takes at most, and one of its prices with its comma. */
#define TYPE_TEXT_MAX (TYPE_ID_LEN_MAX + TYPE_NAME_CHARS_MAX * 4 + 3)
#define TYPE_PRICE_TEXT_MAX 21

size_t terms_text_max(const struct event_terms *terms)
{
    size_t max = terms->channels.n * NAME_SIZE;
    for (size_t i = 0; i < terms->types.n; i++)
        max += TYPE_TEXT_MAX + terms->types.v[i].prices.n * TYPE_PRICE_TEXT_MAX;
    return max;
}

/* ---- channels: their names, one per line, since a name has no control characters ---- */

static struct db_value channels_arg(struct ledger *l, const struct event_terms *terms)
{
    size_t start = l->text.len;
    for (size_t i = 0; i < terms->channels.n; i++) {
        if (i)
            buf_char(&l->text, '\n');
        buf_str(&l->text, terms->channels.v[i]);
    }
    return terms->channels.n ? db_text(l->text.data + start, l->text.len - start)
                             : db_text(NULL, 0);
}

static void read_channels(struct db_stmt *stmt, int column, struct event_terms *terms)
{
    size_t len;
    const char *at = db_column_data(stmt, column, &len), *end = at ? at + len : NULL;
    while (at && at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t name_len = (size_t)((line ? line : end) - at);
        *vec_push(&terms->channels) = hf_strndup(at, name_len);
        at += name_len + 1;
    }
}

/* ---- ticket types: id, name and prices, one type per line, with tabs between the three ---- */

/* "6500,,3000": a price that is left out is that of the category or area. */
static void put_prices(const struct ticket_type *type, struct buf *out)
{
    for (size_t i = 0; i < type->prices.n; i++) {
        if (i)
            buf_char(out, ',');
        if (type->prices.v[i] != TYPE_PRICE_NONE)
            buf_int(out, type->prices.v[i]);
    }
}

static struct db_value types_arg(struct ledger *l, const struct event_terms *terms)
{
    size_t start = l->text.len;
    for (size_t i = 0; i < terms->types.n; i++) {
        if (i)
            buf_char(&l->text, '\n');
        buf_str(&l->text, terms->types.v[i].id);
        buf_char(&l->text, '\t');
        buf_str(&l->text, terms->types.v[i].name);
        buf_char(&l->text, '\t');
        put_prices(&terms->types.v[i], &l->text);
    }
    return terms->types.n ? db_text(l->text.data + start, l->text.len - start) : db_text(NULL, 0);
}

/* Reads the prices of a type.  Returns false if put_prices would not have written them. */
static bool read_prices(const char *at, const char *end, struct ticket_type *type)
{
    while (at < end) {
        int64_t price = TYPE_PRICE_NONE;
        const char *start = at;
        for (; at < end && *at >= '0' && *at <= '9' && price <= PRICE_MAX; at++)
            price = (price < 0 ? 0 : price) * 10 + (*at - '0');
        bool is_odd = price > PRICE_MAX || (*start == '0' && at > start + 1);
        if (is_odd || (at < end && *at != ','))
            return false;
        *vec_push(&type->prices) = price;
        if (at < end && ++at == end)
            *vec_push(&type->prices) = TYPE_PRICE_NONE; /* the list ends with a comma */
    }
    return true;
}

bool terms_types_parse(const char *text, size_t len, struct event_terms *ret)
{
    for (const char *at = text, *end = text + len; at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = line ? line : end;
        const char *name = memchr(at, '\t', (size_t)(line_end - at));
        const char *prices = name ? memchr(name + 1, '\t', (size_t)(line_end - name - 1)) : NULL;
        if (!prices || name == at || prices == name + 1 || ret->types.n == TYPES_MAX ||
            event_terms_type(ret, at, (size_t)(name - at)) >= 0)
            return false;
        struct ticket_type *type = vec_push(&ret->types);
        type->id = hf_strndup(at, (size_t)(name - at));
        type->name = hf_strndup(name + 1, (size_t)(prices - name - 1));
        if (!read_prices(prices + 1, line_end, type) || (line && line + 1 == end))
            return false;
        at = line ? line + 1 : end;
    }
    return true;
}

/* Types of a damaged text are read as far as it is sound; `verify` reports it. */
static void read_types(struct db_stmt *stmt, int column, struct event_terms *terms)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    if (text)
        (void)terms_types_parse(text, len, terms);
}

/* ---- the row ---- */

#define BIND_CHANNELS(field) ledger_arg(l, channels_arg(l, row));
#define BIND_TYPES(field) ledger_arg(l, types_arg(l, row));

void ledger_terms_args(struct ledger *l, const struct event_terms *row) { BIND(EVENT_TERMS); }

#define READ_OWNED(at, field) row->field = column_strdup(stmt, at);
#define READ_CHANNELS(at, field) read_channels(stmt, at, row);
#define READ_TYPES(at, field) read_types(stmt, at, row);

void terms_from_row(struct db_stmt *stmt, struct event_terms *row) { READ(EVENT_TERMS); }
