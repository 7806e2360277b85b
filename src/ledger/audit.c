/* Reads the log: a page of it, the past of one seat, the rows of one hold, the expiry of a hold as
 * it was known at some time.  Pages are ranges of keys.  Seats and holds are followed along their
 * chains, from the newest row back, one entry by its key after another.  Any connection.
 *
 * No transaction is needed: of an entry only an address that is erased changes, so whatever is
 * committed while a chain is followed stands before its end. */
#include <string.h>

#include "ledger/log.h"

#define NO_LIMIT INT32_MAX

static enum hf_status damaged(struct hf_err *err, int64_t event, int64_t seq)
{
    return hf_err_set(err, HF_INTERNAL, "the log of event %lld is damaged near seq %lld",
                      (long long)event, (long long)seq);
}

/* ---- entries ---- */

/* A query of entries with the rows of its current one. */
struct audit_cursor {
    struct db_stmt *stmt;
    struct log_rows rows;
    size_t next;
    int64_t event;
    uint8_t hold_secret[ID_SECRET_SIZE], booking_secret[ID_SECRET_SIZE];
    char actor[ACTOR_SIZE];
};

/* Starts with the entry that has the row `seq`, or the first one behind it. */
static enum hf_status cursor_open(struct audit_cursor *c, struct ledger *l, int64_t event,
                                  int64_t seq, int64_t n_entries, struct hf_err *err)
{
    const struct db_value args[] = {db_int(AUDIT_KEY(event, 0)), db_int(AUDIT_KEY(event, seq)),
                                    db_int(AUDIT_KEY(event + 1, 0) - 1), db_int(n_entries)};
    *c = (struct audit_cursor){.event = event};
    return ledger_query(l, ST_LOG_READ, args, &c->stmt, err);
}

static void cursor_close(struct audit_cursor *c)
{
    if (c->stmt)
        c->stmt->driver->finish(c->stmt);
    vec_close(&c->rows.list);
}

static void secret_from_row(struct db_stmt *stmt, int column, uint8_t out[ID_SECRET_SIZE])
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    memset(out, 0, ID_SECRET_SIZE);
    if (data && len == ID_SECRET_SIZE)
        memcpy(out, data, len);
}

/* An actor that is damaged is as one that is not known; `holdfast verify` tells of it. */
static void actor_from_row(struct db_stmt *stmt, int column, char out[ACTOR_SIZE])
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    memset(out, 0, ACTOR_SIZE);
    if (text && actor_is_valid(text, len))
        memcpy(out, text, len);
}

/* Moves to the next row; *ret_found is false after the last. */
static enum hf_status cursor_next(struct audit_cursor *c, struct audit_entry *ret, bool *ret_found,
                                  struct hf_err *err)
{
    bool is_row;
    *ret_found = false;
    if (c->next == c->rows.list.n) {
        vec_clear(&c->rows.list);
        c->next = 0;
        enum hf_status status = ledger_next(c->stmt, &is_row, err);
        if (status != HF_OK || !is_row)
            return status;
        if (!log_expand(c->stmt, &c->rows))
            return damaged(err, c->event, HOLD_FIRST_FENCE(db_column_int(c->stmt, 0)));
        secret_from_row(c->stmt, LOG_COLUMNS_N, c->hold_secret);
        secret_from_row(c->stmt, LOG_COLUMNS_N + 1, c->booking_secret);
        actor_from_row(c->stmt, LOG_COLUMNS_N + 2, c->actor);
    }
    *ret = (struct audit_entry){.row = c->rows.list.v[c->next++]};
    memcpy(ret->hold_secret, c->hold_secret, ID_SECRET_SIZE);
    memcpy(ret->actor, c->actor, ACTOR_SIZE);
    if (ret->row.booking)
        memcpy(ret->booking_secret, c->booking_secret, ID_SECRET_SIZE);
    *ret_found = true;
    return HF_OK;
}

/* May the entry of this seq have been deleted, since its hold or its event ended long ago? */
static enum hf_status is_pruned(struct ledger *l, int64_t event, int64_t seq, bool *ret,
                                struct hf_err *err)
{
    struct pruned pruned;
    enum hf_status status = ledger_pruned(l, event, &pruned, err);
    *ret = status == HF_OK && seq <= pruned.seq;
    return status;
}

/* Reads the row of one seq.  It must exist unless it has been pruned: *ret_found is then false. */
static enum hf_status read_one(struct ledger *l, int64_t event, int64_t seq,
                               struct audit_entry *ret, bool *ret_found, struct hf_err *err)
{
    struct audit_cursor c;
    bool found = false, pruned = false;
    enum hf_status status = cursor_open(&c, l, event, seq, 1, err);
    while (status == HF_OK && (status = cursor_next(&c, ret, &found, err)) == HF_OK && found &&
           ret->row.seq < seq)
        ;
    cursor_close(&c);
    if (status != HF_OK)
        return status;
    *ret_found = found && ret->row.seq == seq;
    if (*ret_found)
        return HF_OK;
    status = is_pruned(l, event, seq, &pruned, err);
    return status == HF_OK && !pruned ? damaged(err, event, seq) : status;
}

/* ---- the chain of a hold ---- */

static enum hf_status hold_last_seq(struct ledger *l, int64_t hold, int64_t *ret_seq,
                                    struct hf_err *err)
{
    struct hold_row row = {0};
    enum hf_status status = ledger_holds_read(l, &hold, 1, &row, err);
    *ret_seq = row.last_seq;
    hold_row_close(&row);
    return status;
}

/* Is the row one of its hold's chain? */
static bool is_link(const struct audit_row *row)
{
    return row->object == AUDIT_HOLD || row->object == AUDIT_PAYMENT ||
           (row->object == AUDIT_BOOKING && row->prev);
}

/* Reads the row at which the chain of a hold stands.  The next one is at row.prev.  *ret_found is
 * false if it has been pruned. */
static enum hf_status read_link(struct ledger *l, int64_t hold, int64_t seq,
                                struct audit_entry *ret, bool *ret_found, struct hf_err *err)
{
    enum hf_status status = read_one(l, HOLD_EVENT(hold), seq, ret, ret_found, err);
    if (status == HF_OK && *ret_found &&
        (!is_link(&ret->row) || ret->row.hold != hold || ret->row.prev >= seq))
        return damaged(err, HOLD_EVENT(hold), seq);
    return status;
}

/* ---- a page ---- */

static enum hf_status read_page(struct ledger *l, const struct audit_query *query,
                                struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    struct audit_cursor c;
    struct audit_entry entry = {0};
    size_t n = 0;
    bool found = true;
    enum hf_status status =
        cursor_open(&c, l, query->event, query->after + 1, (int64_t)query->limit + 1, err);
    while (status == HF_OK && n < query->limit &&
           (status = cursor_next(&c, &entry, &found, err)) == HF_OK && found)
        if (entry.row.seq > query->after)
            ret[n++] = entry;
    cursor_close(&c);
    *ret_n = n;
    return status;
}

/* ---- a seat ---- */

static bool is_of_seat(const struct audit_row *row, const struct seat_chain *chain)
{
    return row->object == AUDIT_SEAT && row->item == chain->seat;
}

typedef bool entry_fn(void *ctx, const struct audit_entry *entry);

/* Calls `entry` for the rows about the seat that the view does not know yet, newest first.
 * *ret_go_on is false if one of the calls returned false. */
static enum hf_status visit_news(struct ledger *l, const struct seat_chain *chain, entry_fn *entry,
                                 void *ctx, bool *ret_go_on, struct hf_err *err)
{
    struct audit_cursor c;
    struct audit_entry row = {0};
    VEC(struct audit_entry) news = {0};
    bool found = true;
    enum hf_status status = cursor_open(&c, l, chain->event, chain->seq + 1, NO_LIMIT, err);
    while (status == HF_OK && (status = cursor_next(&c, &row, &found, err)) == HF_OK && found)
        if (row.row.seq > chain->seq && is_of_seat(&row.row, chain))
            *vec_push(&news) = row;
    cursor_close(&c);
    *ret_go_on = true;
    for (size_t i = news.n; status == HF_OK && *ret_go_on && i-- > 0;)
        *ret_go_on = entry(ctx, &news.v[i]);
    vec_close(&news);
    return status;
}

/* Calls `entry` for the seat's rows, newest first, until it returns false.  O(rows of the seat),
 * and of the whole log only what the view does not know yet. */
static enum hf_status visit_seat(struct ledger *l, const struct seat_chain *chain, entry_fn *entry,
                                 void *ctx, struct hf_err *err)
{
    struct audit_entry row = {0};
    bool go_on, found = true;
    enum hf_status status = visit_news(l, chain, entry, ctx, &go_on, err);
    for (int64_t seq = chain->head; status == HF_OK && go_on && seq > 0; seq = row.row.prev) {
        status = read_one(l, chain->event, seq, &row, &found, err);
        if (status == HF_OK && !found)
            break;
        if (status == HF_OK && (!is_of_seat(&row.row, chain) || row.row.prev >= seq))
            return damaged(err, chain->event, seq);
        if (status == HF_OK)
            go_on = entry(ctx, &row);
    }
    return status;
}

/* A visit of a seat's rows, and of the renewals between them. */
struct told_visit {
    struct ledger *l;
    entry_fn *entry;
    void *ctx;
    int64_t newer; /* seq of the seat's row that was seen before; INT64_MAX: none */
    enum hf_status status;
    struct hf_err *err;
};

/* Tells the renewals of the hold that has the seat since `granted`, newest first.  A renewal is
 * logged once and not for every seat of its hold; here it is told as a row about the seat.  Returns
 * false if the visit is over. */
static bool tell_renewals(struct told_visit *v, const struct audit_row *granted)
{
    struct audit_entry link = {0};
    bool found = true, go_on = true;
    int64_t seq;
    v->status = hold_last_seq(v->l, granted->hold, &seq, v->err);
    for (; v->status == HF_OK && go_on && seq > granted->seq; seq = link.row.prev) {
        v->status = read_link(v->l, granted->hold, seq, &link, &found, v->err);
        if (v->status != HF_OK || !found)
            break;
        if (link.row.cause != CAUSE_RENEW || seq >= v->newer)
            continue;
        struct audit_entry told = link;
        told.row.object = AUDIT_SEAT;
        told.row.item = granted->item;
        told.row.quantity = 1;
        told.row.from = told.row.to = SEAT_HELD;
        told.row.type = granted->type;
        go_on = v->entry(v->ctx, &told);
    }
    return v->status == HF_OK && go_on;
}

static bool tell(void *ctx, const struct audit_entry *entry)
{
    struct told_visit *v = ctx;
    bool go_on = entry->row.to != SEAT_HELD || tell_renewals(v, &entry->row);
    v->newer = entry->row.seq;
    return go_on && v->entry(v->ctx, entry);
}

/* Calls `entry` for the seat's rows and the renewals between them, newest first, until it returns
 * false. */
static enum hf_status visit_told(struct ledger *l, const struct seat_chain *chain, entry_fn *entry,
                                 void *ctx, struct hf_err *err)
{
    struct told_visit v = {.l = l, .entry = entry, .ctx = ctx, .newer = INT64_MAX, .err = err};
    enum hf_status status = visit_seat(l, chain, tell, &v, err);
    return status == HF_OK ? v.status : status;
}

/* The newest rows until some time. */
struct past {
    int64_t at;
    struct audit_entry *ret;
    size_t n, limit;
};

static bool keep_past(void *ctx, const struct audit_entry *entry)
{
    struct past *past = ctx;
    if (entry->row.at <= past->at)
        past->ret[past->n++] = *entry;
    return past->n < past->limit;
}

enum hf_status ledger_audit_seat(struct ledger *l, const struct seat_chain *chain, int64_t at,
                                 size_t limit, struct audit_entry *ret, size_t *ret_n,
                                 struct hf_err *err)
{
    struct past past = {.at = at, .ret = ret, .limit = limit};
    enum hf_status status = visit_told(l, chain, keep_past, &past, err);
    *ret_n = past.n;
    return status;
}

/* The oldest rows behind some seq: a ring of the last `limit` that were seen. */
struct oldest {
    const struct audit_query *query;
    VEC(struct audit_entry) ring;
    size_t seen;
};

static bool keep_oldest(void *ctx, const struct audit_entry *entry)
{
    struct oldest *oldest = ctx;
    const struct audit_query *query = oldest->query;
    hf_check(query->limit > 0);
    if (entry->row.seq <= query->after)
        return false;
    if (query->hold && entry->row.hold != query->hold)
        return true;
    if (oldest->ring.n < query->limit)
        vec_push(&oldest->ring);
    oldest->ring.v[oldest->seen++ % query->limit] = *entry;
    return true;
}

static enum hf_status read_seat(struct ledger *l, const struct audit_query *query,
                                struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    struct oldest oldest = {.query = query};
    enum hf_status status = visit_told(l, query->seat, keep_oldest, &oldest, err);
    size_t n = oldest.ring.n;
    for (size_t i = 0; status == HF_OK && i < n; i++)
        ret[i] = oldest.ring.v[(oldest.seen - 1 - i) % query->limit];
    vec_close(&oldest.ring);
    *ret_n = n;
    return status;
}

/* ---- a hold ---- */

/* Appends the rows of the transition that begins with `first`: the hold's own, and those that
 * follow and name the hold, up to its next transition. */
static enum hf_status read_transition(struct ledger *l, const struct audit_query *query,
                                      const struct audit_row *first, struct audit_entry *ret,
                                      size_t *n, struct hf_err *err)
{
    struct audit_cursor c;
    struct audit_entry entry = {0};
    bool found = true;
    int64_t removed = first->cause == CAUSE_CHANGE ? HOLD_PLACES_MAX : 0; /* at most */
    int64_t seq = first->seq;
    int64_t entries = first->quantity + removed + 3; /* hold, booking, and what follows */
    enum hf_status status = cursor_open(&c, l, query->event, seq, entries, err);
    while (status == HF_OK && *n < query->limit &&
           (status = cursor_next(&c, &entry, &found, err)) == HF_OK && found) {
        const struct audit_row *row = &entry.row;
        if (row->seq > seq && (row->hold != query->hold || is_link(row)))
            break;
        if (row->seq > query->after && row->seq >= seq)
            ret[(*n)++] = entry;
    }
    cursor_close(&c);
    return status;
}

/* The transitions from the last one that may have rows behind query->after. */
static enum hf_status read_hold(struct ledger *l, const struct audit_query *query,
                                struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    VEC(struct audit_row) links = {0};
    struct audit_entry link = {0};
    int64_t seq;
    size_t n = 0;
    enum hf_status status = hold_last_seq(l, query->hold, &seq, err);
    while (status == HF_OK && seq > 0) {
        bool found = false;
        status = read_link(l, query->hold, seq, &link, &found, err);
        if (status != HF_OK || !found)
            break;
        *vec_push(&links) = link.row;
        seq = seq > query->after ? link.row.prev : 0;
    }
    for (size_t i = links.n; status == HF_OK && n < query->limit && i-- > 0;)
        status = read_transition(l, query, &links.v[i], ret, &n, err);
    vec_close(&links);
    *ret_n = n;
    return status;
}

enum hf_status ledger_audit_read(struct ledger *l, const struct audit_query *query,
                                 struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = query->seat   ? read_seat(l, query, ret, &n, err)
                            : query->hold ? read_hold(l, query, ret, &n, err)
                                          : read_page(l, query, ret, &n, err);
    if (status == HF_OK)
        *ret_n = n;
    return status;
}

enum hf_status ledger_audit_until(struct ledger *l, int64_t hold, int64_t at, int64_t *ret_until,
                                  struct hf_err *err)
{
    struct audit_entry link = {0};
    int64_t seq, until = 0;
    enum hf_status status = hold_last_seq(l, hold, &seq, err);
    while (status == HF_OK && seq > 0) {
        bool found = false;
        status = read_link(l, hold, seq, &link, &found, err);
        if (status == HF_OK && !found)
            break;
        if (status == HF_OK && link.row.object == AUDIT_HOLD && link.row.at <= at) {
            until = link.row.until;
            break;
        }
        seq = link.row.prev;
    }
    if (status == HF_OK)
        *ret_until = until;
    return status;
}
