/* See log.h.  Pure but for reading columns; on the thread of the connection. */
#include "ledger/log.h"

#include <string.h>

/* ---- writing ---- */

/* What a place of an entry has by the entry's first row. */
static bool place_fits(const struct audit_row *first, const struct audit_row *row, uint32_t channel)
{
    bool blocked = row->from == SEAT_BLOCKED || row->to == SEAT_BLOCKED;
    return row->until == (row->to == SEAT_HELD ? first->until : 0) &&
           row->channel == (blocked ? channel : 0) &&
           row->booking == (row->to == SEAT_BOOKED ? row->hold : 0) &&
           (row->object != AUDIT_SEAT || row->quantity == 1);
}

static bool booking_fits(const struct audit_row *first, const struct audit_row *row)
{
    return row->from == BOOKING_NONE && row->to == BOOKING_CONFIRMED && row->booking == row->hold &&
           row->quantity == first->quantity && !row->until;
}

static bool is_place(const struct audit_row *row)
{
    return row->object == AUDIT_SEAT || row->object == AUDIT_AREA;
}

/* Is `row`, which follows on `last`, of the entry that begins with `first`? */
static bool joins(const struct audit_row *first, const struct audit_row *last,
                  const struct audit_row *row)
{
    bool same = row->event == first->event && row->seq == last->seq + 1 && row->at == first->at &&
                row->cause == first->cause && row->hold == first->hold &&
                row->fence == first->fence && actor_equal(row->actor, first->actor);
    if (!same || first->object == AUDIT_EVENT || first->object == AUDIT_BOOKING ||
        first->object == AUDIT_PAYMENT || first->object == AUDIT_WAIT)
        return false;
    if (row->object == AUDIT_BOOKING)
        return last == first && first->object == AUDIT_HOLD && booking_fits(first, row);
    if ((row->object != AUDIT_SEAT && row->object != AUDIT_AREA) ||
        !place_fits(first, row, is_place(last) ? last->channel : row->channel))
        return false;
    if (row->object == last->object)
        return row->from == last->from && row->to == last->to;
    return last->object != AUDIT_AREA; /* areas are the last */
}

size_t log_entry_len(const struct audit_row *rows, size_t n)
{
    size_t len = 1;
    while (len < n && joins(&rows[0], &rows[len - 1], &rows[len]))
        len++;
    return len;
}

/* Two lists with brackets and two statuses each; a place is two numbers below 2^40 and commas.  And
 * one list of types of two digits, with their commas. */
size_t log_text_max(size_t n) { return 34 + n * 31; }

/* Writes the places of one kind, which stand together, as a list; SQL NULL if there are none. */
static struct db_value list_arg(struct ledger *l, const struct audit_row *rows, size_t n,
                                enum audit_object object)
{
    size_t start = l->text.len;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].object != object)
            continue;
        if (l->text.len == start) {
            buf_char(&l->text, '[');
            buf_int(&l->text, rows[i].from);
            buf_char(&l->text, ',');
            buf_int(&l->text, rows[i].to);
        }
        buf_char(&l->text, ',');
        buf_int(&l->text, rows[i].item);
        buf_char(&l->text, ',');
        buf_int(&l->text, object == AUDIT_SEAT ? rows[i].prev : rows[i].quantity);
    }
    if (l->text.len == start)
        return db_text(NULL, 0);
    buf_char(&l->text, ']');
    return db_text(l->text.data + start, l->text.len - start);
}

/* Writes the types of the places, or SQL NULL if all are of the first. */
static struct db_value types_arg(struct ledger *l, const struct audit_row *rows, size_t n)
{
    size_t start = l->text.len, first = 0;
    while (first < n && !rows[first].type)
        first++;
    if (first == n)
        return db_text(NULL, 0);
    for (size_t i = 0; i < n; i++) {
        if (!is_place(&rows[i]))
            continue;
        buf_char(&l->text, l->text.len == start ? '[' : ',');
        buf_int(&l->text, rows[i].type);
    }
    buf_char(&l->text, ']');
    return db_text(l->text.data + start, l->text.len - start);
}

/* The channel of those places of the entry that have one; they all have the same. */
static uint32_t channel_of(const struct audit_row *rows, size_t n)
{
    uint32_t channel = 0;
    for (size_t i = 0; i < n && !channel; i++)
        channel = rows[i].channel;
    return channel;
}

void log_put(struct ledger *l, const struct audit_row *rows, size_t n)
{
    const struct audit_row *first = &rows[0];
    bool leads = first->object != AUDIT_SEAT && first->object != AUDIT_AREA;
    bool books = n > 1 && rows[1].object == AUDIT_BOOKING;
    ledger_arg_int(l, AUDIT_KEY(first->event, first->seq));
    ledger_arg_int(l, first->at);
    ledger_arg_int(l, leads ? first->object : 0);
    ledger_arg_int(l, first->cause);
    ledger_arg_int(l, leads ? first->from : 0);
    ledger_arg_int(l, leads ? first->to : 0);
    ledger_arg_int(l, leads ? first->quantity : 0);
    ledger_arg_int(l, first->hold);
    ledger_arg_int(l, books ? rows[1].booking : first->booking);
    ledger_arg_int(l, first->fence);
    ledger_arg_int(l, first->until);
    ledger_arg_int(l, leads ? first->prev : 0);
    ledger_arg(l, list_arg(l, rows, n, AUDIT_SEAT));
    ledger_arg(l, list_arg(l, rows, n, AUDIT_AREA));
    ledger_arg_int(l, channel_of(rows, n));
    ledger_arg(l, types_arg(l, rows, n));
    ledger_arg(l, db_text(first->actor, first->actor ? strlen(first->actor) : 0));
}

/* ---- reading ---- */

/* Reads a number below 2^40 as list_arg writes it. */
static bool read_number(struct log_list *list, int64_t *ret)
{
    const char *at = list->at;
    int64_t value = 0;
    for (; at < list->end && *at >= '0' && *at <= '9' && value < (int64_t)1 << AUDIT_SEQ_BITS; at++)
        value = value * 10 + (*at - '0');
    if (at == list->at || value >= (int64_t)1 << AUDIT_SEQ_BITS ||
        (*list->at == '0' && at > list->at + 1))
        return false;
    list->at = at;
    *ret = value;
    return true;
}

static bool read_comma(struct log_list *list)
{
    bool is_comma = list->at < list->end && *list->at == ',';
    list->at += is_comma;
    return is_comma;
}

bool log_list_open(struct db_stmt *stmt, int column, struct log_list *ret)
{
    size_t len;
    int64_t from, to;
    const char *text = db_column_data(stmt, column, &len);
    *ret = (struct log_list){0};
    if (!text)
        return true;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    ret->at = text + 1;
    ret->end = text + len - 1;
    if (!read_number(ret, &from) || !read_comma(ret) || !read_number(ret, &to) ||
        from > SEAT_BLOCKED || to > SEAT_BLOCKED || ret->at == ret->end)
        return false;
    ret->from = (int)from;
    ret->to = (int)to;
    return true;
}

bool log_list_next(struct log_list *list, int64_t *ret_item, int64_t *ret_value)
{
    const char *start = list->at;
    if (start == list->end)
        return false;
    if (read_comma(list) && read_number(list, ret_item) && read_comma(list) &&
        read_number(list, ret_value))
        return true;
    list->at = start;
    return false;
}

static struct audit_row *push_next(struct log_rows *out, struct audit_row *next)
{
    struct audit_row *row = vec_push(&out->list);
    *row = *next;
    next->seq++;
    return row;
}

/* Appends the places of one column.  `next` has what all places of the entry share. */
static bool expand_places(struct db_stmt *stmt, int column, enum audit_object object,
                          struct audit_row *next, struct log_rows *out)
{
    struct log_list list;
    int64_t item, value, until = next->until;
    if (!log_list_open(stmt, column, &list))
        return false;
    next->object = object;
    next->from = list.from;
    next->to = list.to;
    next->until = list.to == SEAT_HELD ? until : 0;
    next->booking = list.to == SEAT_BOOKED ? next->hold : 0;
    next->channel = list.from == SEAT_BLOCKED || list.to == SEAT_BLOCKED
                        ? (uint32_t)db_column_int(stmt, AT_a_channel)
                        : 0;
    while (log_list_next(&list, &item, &value)) {
        struct audit_row *row = push_next(out, next);
        row->item = item;
        row->quantity = object == AUDIT_SEAT ? 1 : value;
        row->prev = object == AUDIT_SEAT ? value : 0;
    }
    next->until = until;
    return list.at == list.end;
}

/* Gives the places, which are the last `n` rows, their types.  Returns false if the column is
 * damaged or is a list of another length. */
static bool expand_types(struct db_stmt *stmt, struct audit_row *places, size_t n)
{
    size_t len;
    const char *text = db_column_data(stmt, AT_a_types, &len);
    if (!text)
        return true;
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    struct log_list list = {.at = text + 1, .end = text + len - 1};
    for (size_t i = 0; i < n; i++) {
        int64_t type;
        if ((i && !read_comma(&list)) || !read_number(&list, &type) || type >= TYPES_MAX)
            return false;
        places[i].type = (uint32_t)type;
    }
    return list.at == list.end;
}

bool log_expand(struct db_stmt *stmt, struct log_rows *out)
{
    int64_t entry = db_column_int(stmt, AT_a_entry), booking = db_column_int(stmt, AT_a_booking);
    size_t before = out->list.n;
    struct audit_row next = {
        .event = entry >> AUDIT_SEQ_BITS,
        .seq = entry & (((int64_t)1 << AUDIT_SEQ_BITS) - 1),
        .at = db_column_int(stmt, AT_a_at),
        .cause = (enum audit_cause)db_column_int(stmt, AT_a_cause),
        .item = -1,
        .hold = db_column_int(stmt, AT_a_hold),
        .fence = db_column_int(stmt, AT_a_fence),
        .until = db_column_int(stmt, AT_a_until),
    };
    enum audit_object object = (enum audit_object)db_column_int(stmt, AT_a_object);
    if (object) {
        struct audit_row *row = push_next(out, &next);
        row->object = object;
        row->from = (int)db_column_int(stmt, AT_a_before);
        row->to = (int)db_column_int(stmt, AT_a_after);
        row->quantity = db_column_int(stmt, AT_a_quantity);
        row->prev = db_column_int(stmt, AT_a_prev);
        row->booking = object == AUDIT_HOLD ? 0 : booking;
    }
    if (object == AUDIT_HOLD && booking) {
        struct audit_row *row = push_next(out, &next);
        row->object = AUDIT_BOOKING;
        row->from = BOOKING_NONE;
        row->to = BOOKING_CONFIRMED;
        row->quantity = db_column_int(stmt, AT_a_quantity);
        row->booking = booking;
        row->until = 0;
    }
    size_t first = out->list.n;
    return expand_places(stmt, AT_a_seats, AUDIT_SEAT, &next, out) &&
           expand_places(stmt, AT_a_areas, AUDIT_AREA, &next, out) && out->list.n > before &&
           expand_types(stmt, out->list.v + first, out->list.n - first);
}
