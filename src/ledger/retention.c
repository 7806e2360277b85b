/* Retention: finished holds, ended entries of waiting lists and what archived events no longer need
 * are deleted, and owners are erased.  Holds and entries of an event draw their keys from one
 * counter, so a list of keys may have both.  In slices, each a transaction of its own that takes a
 * few milliseconds, between the batches of a worker. See ledger.h.
 *
 * Here an entry is one of the log, and one of a waiting list a wait. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"

#define SLICE_EVENTS 500   /* looked at at once */
#define SLICE_ENTRIES 500  /* of the log, deleted at once */
#define SLICE_ENDS 200     /* entries of the log, looked at at once for what ends in them */
#define SLICE_HOLDS 2000   /* and waits, looked at, or deleted, at once */
#define SLICE_KEYS 500     /* stored answers looked at at once */
#define ERASE_ENTRIES 5000 /* of the log, named in one statement */

/* ---- the rows of holds and waits ---- */

/* Runs a statement over the keys of holds, which are those of their bookings too, or of waits. */
static enum hf_status on_holds(struct ledger *l, enum statement which, const int64_t *keys,
                               size_t n, int64_t *ret_changes, struct hf_err *err)
{
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++)
        ledger_arg_int(l, keys[i]);
    return ledger_exec_args(l, which, n, ret_changes, err);
}

/* How many entries may follow that of a chain and belong to the same transition, as
 * read_transition in audit.c has it: those of its booking and of its places. */
static int64_t followers_max(struct db_stmt *chains)
{
    int64_t object = db_column_int(chains, 2), cause = db_column_int(chains, 3);
    if (object == AUDIT_PAYMENT || object == AUDIT_WAIT || cause == CAUSE_RENEW)
        return 0;
    int64_t places = db_column_int(chains, 4);
    if (places > HOLD_PLACES_MAX || cause == CAUSE_CHANGE) /* damaged; or some are given back */
        places = 2 * HOLD_PLACES_MAX;
    return places + 1;
}

/* An entry, if there is one of this key, about the hold, or about a wait that names the hold. */
struct entry_of_hold {
    int64_t entry, hold;
    bool waits;
};
struct entries_of_holds {
    VEC(struct entry_of_hold) list;
};

static enum hf_status find_entries(struct ledger *l, const int64_t *holds, size_t n,
                                   struct entries_of_holds *ret, struct hf_err *err)
{
    struct db_stmt *chains;
    bool is_row;
    enum hf_status status = ledger_stmt(l, ST_HOLD_CHAINS, &chains, err);
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++)
        ledger_arg_int(l, holds[i]);
    if (status == HF_OK)
        status = chains->driver->query_many(chains, l->args.v, n, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(chains, &is_row, err)) == HF_OK && is_row)
        for (int64_t i = 0, last = followers_max(chains); i <= last; i++)
            *vec_push(&ret->list) =
                (struct entry_of_hold){db_column_int(chains, 0) + i, db_column_int(chains, 1),
                                       db_column_int(chains, 2) == AUDIT_WAIT};
    return status;
}

/* Runs a statement over all entries that are about these holds and waits.  O(entries). */
static enum hf_status on_entries(struct ledger *l, enum statement which, const int64_t *holds,
                                 size_t n, struct hf_err *err)
{
    struct entries_of_holds entries = {0};
    enum hf_status status = find_entries(l, holds, n, &entries, err);
    for (size_t i = 0; i < entries.list.n && status == HF_OK;) {
        size_t first = i;
        vec_clear(&l->args);
        for (; i < entries.list.n && i < first + ERASE_ENTRIES; i++) {
            ledger_arg_int(l, entries.list.v[i].entry);
            ledger_arg_int(l, entries.list.v[i].hold);
            ledger_arg_int(l, entries.list.v[i].waits);
        }
        status = ledger_exec_args(l, which, i - first, NULL, err);
    }
    vec_close(&entries.list);
    return status;
}

/* ---- pruning: which event ---- */

enum hf_status ledger_prune_next(struct ledger *l, const struct prune_limits *limits,
                                 struct prune *p, struct hf_err *err)
{
    int64_t last = p->after + SLICE_EVENTS, next;
    const struct db_value args[] = {db_int(p->after), db_int(last), db_int(limits->log_before),
                                    db_int(limits->holds_before)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_read_int(l, ST_EVENT_NEXT, &next, err);
    if (status != HF_OK || (status = ledger_query(l, ST_PRUNE_NEXT, args, &stmt, err)) != HF_OK ||
        (status = ledger_next(stmt, &is_row, err)) != HF_OK)
        return status;
    if (is_row) {
        p->event = p->after = db_column_int(stmt, 0);
        p->whole = db_column_int(stmt, 1) != 0;
        p->hold = HOLD_KEY(p->event, 0);
        stmt->driver->finish(stmt);
    } else {
        p->after = last < next ? last : 0;
    }
    return HF_OK;
}

enum hf_status ledger_pruned(struct ledger *l, int64_t event, struct pruned *ret,
                             struct hf_err *err)
{
    const struct db_value args[] = {db_int(event)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_PRUNED_READ, args, &stmt, err);
    if (status != HF_OK || (status = ledger_next(stmt, &is_row, err)) != HF_OK)
        return status;
    *ret = (struct pruned){0};
    if (!is_row)
        return HF_OK;
    int64_t log_seq = db_column_int(stmt, 0), holds_seq = db_column_int(stmt, 1);
    *ret = (struct pruned){.log_seq = log_seq, .seq = log_seq > holds_seq ? log_seq : holds_seq};
    stmt->driver->finish(stmt);
    return HF_OK;
}

/* The event as the slice finds it. */
struct prune_state {
    int64_t event, status, pruned_seq, holds_pruned_seq, seq, now;
};

static enum hf_status read_state(struct ledger *l, struct prune_state *s, struct hf_err *err)
{
    const struct db_value args[] = {db_int(s->event)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_PRUNE_STATE, args, &stmt, err);
    if (status != HF_OK || (status = ledger_next(stmt, &is_row, err)) != HF_OK)
        return status;
    s->status = 0;
    if (!is_row)
        return HF_OK;
    s->status = db_column_int(stmt, 0);
    s->pruned_seq = db_column_int(stmt, 1);
    s->holds_pruned_seq = db_column_int(stmt, 2);
    s->seq = db_column_int(stmt, 3);
    s->now = db_column_int(stmt, 4);
    stmt->driver->finish(stmt);
    return HF_OK;
}

/* An entry of the log, as far as pruning has to know it. */
struct old_entry {
    int64_t entry, at, object, after, hold, fence;
};

/* Reads up to `n` entries of the event behind `seq`. */
static enum hf_status read_entries(struct ledger *l, int64_t event, int64_t seq, size_t n,
                                   struct old_entry *ret, size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(AUDIT_KEY(event, seq)), db_int(AUDIT_KEY(event + 1, 0)),
                                    db_int((int64_t)n)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_LOG_FIRST, args, &stmt, err);
    *ret_n = 0;
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        ret[(*ret_n)++] = (struct old_entry){db_column_int(stmt, 0), db_column_int(stmt, 1),
                                             db_column_int(stmt, 2), db_column_int(stmt, 3),
                                             db_column_int(stmt, 4), db_column_int(stmt, 5)};
    return status;
}

/* ---- pruning: finished holds and waits ---- */

/* The most entries that one transition can have, and the one behind it: a ledger that is older than
 * schema version 4 has an entry for each place. */
#define TRANSITION_ENTRIES_MAX (2 * HOLD_PLACES_MAX + 4)

/* Returns how many of the entries can be looked at: those of whole transitions that were logged
 * until `before`.  The entry behind them is among the `n`, so the newest one always stays. */
static size_t whole_transitions(const struct old_entry *entries, size_t n, int64_t before)
{
    for (size_t i = n; i-- > 1;) {
        bool goes_on = entries[i].object == 0 && entries[i].hold;
        if (!goes_on && entries[i - 1].at <= before)
            return i;
    }
    return 0;
}

/* The hold, or the wait, that ends in this entry; 0: none does. */
static int64_t ends_in(const struct old_entry *entry, bool waits)
{
    if (waits)
        return entry->object == AUDIT_WAIT && !wait_is_live((enum wait_status)entry->after)
                   ? HOLD_KEY(entry->entry >> AUDIT_SEQ_BITS, entry->fence)
                   : 0;
    return entry->object == AUDIT_HOLD &&
                   (entry->after == HOLD_EXPIRED || entry->after == HOLD_RELEASED)
               ? entry->hold
               : 0;
}

/* Appends those holds, or waits, among the ones that end in these entries that may go. */
static enum hf_status find_finished(struct ledger *l, const struct old_entry *entries, size_t n,
                                    int64_t seq, bool waits, int64_t *ret, size_t *ret_n,
                                    struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    size_t n_ends = 0, found = 0;
    enum hf_status status =
        ledger_stmt(l, waits ? ST_WAITS_FINISHED : ST_HOLDS_FINISHED, &stmt, err);
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++) {
        int64_t key = ends_in(&entries[i], waits);
        if (!key)
            continue;
        ledger_arg_int(l, key);
        ledger_arg_int(l, seq);
        n_ends++;
    }
    if (status != HF_OK || !n_ends)
        return status;
    status = stmt->driver->query_many(stmt, l->args.v, n_ends, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        if (found++ < n_ends)
            ret[(*ret_n)++] = db_column_int(stmt, 0);
    return status;
}

/* Deletes what the keys stand for: holds, and behind them waits. */
static enum hf_status delete_finished(struct ledger *l, const int64_t *keys, size_t n_holds,
                                      size_t n, struct hf_err *err)
{
    enum hf_status status;
    if (!n)
        return HF_OK;
    if ((status = on_entries(l, ST_LOG_DELETE, keys, n, err)) != HF_OK ||
        (status = on_holds(l, ST_NOTICES_DELETE, keys, n, NULL, err)) != HF_OK ||
        (n_holds && (status = on_holds(l, ST_HOLD_DELETE, keys, n_holds, NULL, err)) != HF_OK))
        return status;
    return n > n_holds ? on_holds(l, ST_WAIT_DELETE, keys + n_holds, n - n_holds, NULL, err)
                       : HF_OK;
}

/* Looks at the next entries of the log, and deletes the holds and the waits that end in them. */
static enum hf_status prune_finished(struct ledger *l, int64_t before, const struct prune_state *s,
                                     struct prune *p, struct hf_err *err)
{
    size_t max = SLICE_ENDS + TRANSITION_ENTRIES_MAX, n = 0, n_holds = 0, n_keys = 0;
    struct old_entry *entries = hf_alloc(max * sizeof *entries);
    int64_t *keys = hf_alloc(max * sizeof *keys), after = s->holds_pruned_seq;
    enum hf_status status = read_entries(l, s->event, after, SLICE_ENDS, entries, &n, err);
    size_t whole = whole_transitions(entries, n, before);
    if (status == HF_OK && !whole && n == SLICE_ENDS) {
        status = read_entries(l, s->event, after, max, entries, &n, err);
        whole = whole_transitions(entries, n, before);
    }
    if (status == HF_OK && whole) {
        int64_t seq = (entries[whole].entry & SEQ_MAX) - 1;
        const struct db_value mark[] = {db_int(s->event), db_int(seq)};
        status = find_finished(l, entries, whole, seq, false, keys, &n_keys, err);
        n_holds = n_keys;
        if (status == HF_OK &&
            (status = find_finished(l, entries, whole, seq, true, keys, &n_keys, err)) == HF_OK &&
            (status = delete_finished(l, keys, n_holds, n_keys, err)) == HF_OK)
            status = ledger_exec(l, ST_HOLDS_PRUNED, mark, NULL, err);
        p->n_holds += (int64_t)n_holds;
    }
    if (!whole)
        p->event = 0;
    free(entries);
    free(keys);
    return status;
}

/* ---- pruning: a whole event ---- */

/* Entries are deleted up to the first that stays, whose seq tells how far the log has been pruned.
 */
static enum hf_status prune_log(struct ledger *l, const struct prune_state *s, struct hf_err *err)
{
    struct old_entry entries[SLICE_ENTRIES + 1];
    int64_t end = AUDIT_KEY(s->event + 1, 0);
    size_t n = 0;
    enum hf_status status = read_entries(l, s->event, 0, SLICE_ENTRIES + 1, entries, &n, err);
    if (status != HF_OK)
        return status;
    int64_t stays = n > SLICE_ENTRIES ? entries[SLICE_ENTRIES].entry : end;
    int64_t pruned_seq = stays == end ? s->seq : stays - AUDIT_KEY(s->event, 0) - 1;
    const struct db_value range[] = {db_int(AUDIT_KEY(s->event, 0)), db_int(stays)};
    const struct db_value mark[] = {db_int(s->event), db_int(pruned_seq)};
    if ((status = ledger_exec(l, ST_LOG_PRUNE, range, NULL, err)) != HF_OK)
        return status;
    return ledger_exec(l, ST_PRUNED_WRITE, mark, NULL, err);
}

/* Looks at the next holds and waits in the order of their keys, so that sales are passed over once.
 * Holds that were booked stay, whatever became of the booking: they say what the money was for.
 * The notifications about all of them were delivered long ago, or never will be. */
static enum hf_status prune_holds(struct ledger *l, struct prune *p, bool *ret_done,
                                  struct hf_err *err)
{
    int64_t *keys = hf_alloc(SLICE_HOLDS * sizeof *keys);
    size_t n = 0;
    const struct db_value next[] = {db_int(p->hold), db_int(HOLD_KEY(p->event + 1, 0)),
                                    db_int(SLICE_HOLDS)};
    enum hf_status status = ledger_read_ints(l, ST_HOLDS_AFTER, next, SLICE_HOLDS, keys, &n, err);
    if (status == HF_OK && n) {
        const struct db_value range[] = {db_int(p->hold), db_int(keys[n - 1])};
        status = ledger_exec(l, ST_NOTICES_PRUNE, range, NULL, err);
        if (status == HF_OK)
            status = ledger_exec(l, ST_HOLDS_PRUNE, range, NULL, err);
        if (status == HF_OK)
            status = ledger_exec(l, ST_WAITS_PRUNE, range, NULL, err);
        p->hold = keys[n - 1];
    }
    *ret_done = n < SLICE_HOLDS;
    free(keys);
    return status;
}

static enum hf_status finish(struct ledger *l, const struct prune_state *s, struct hf_err *err)
{
    const struct db_value heads[] = {db_int(SEAT_KEY(s->event, 0)),
                                     db_int(SEAT_KEY(s->event + 1, 0))};
    const struct db_value mark[] = {db_int(s->event), db_int(s->seq)};
    enum hf_status status = ledger_exec(l, ST_HEADS_PRUNE, heads, NULL, err);
    return status == HF_OK ? ledger_exec(l, ST_HOLDS_PRUNED, mark, NULL, err) : status;
}

/* Inside the transaction, with the event's clock row locked. */
static enum hf_status slice(struct ledger *l, const struct prune_limits *limits, struct prune *p,
                            struct hf_err *err)
{
    struct prune_state s = {.event = p->event};
    bool done = false;
    enum hf_status status = read_state(l, &s, err);
    if (status != HF_OK)
        return status;
    if (!p->whole)
        return prune_finished(l, limits->holds_before, &s, p, err);
    if (s.status != EVENT_ARCHIVED || s.now > limits->log_before) {
        p->event = 0;
        return HF_OK;
    }
    if (s.pruned_seq < s.seq)
        return prune_log(l, &s, err);
    if ((status = prune_holds(l, p, &done, err)) != HF_OK || !done)
        return status;
    p->event = 0;
    return finish(l, &s, err);
}

enum hf_status ledger_prune_slice(struct ledger *l, const struct prune_limits *limits,
                                  struct prune *p, struct hf_err *err)
{
    struct clock_row clock = {.event = p->event};
    const struct prune before = *p;
    int64_t now;
    enum hf_status status;
    if ((status = ledger_begin(l, err)) != HF_OK)
        return status;
    if ((status = ledger_lock(l, &clock, 1, &now, err)) != HF_OK ||
        (status = slice(l, limits, p, err)) != HF_OK || (status = ledger_commit(l, err)) != HF_OK) {
        ledger_rollback(l);
        *p = before;
    }
    return status;
}

/* ---- erasing an owner ---- */

/* Addresses stand in the log as actors.  An intent that is yet to be created gets no e-mail address
 * then. */
static enum hf_status erase_buyer(struct ledger *l, const int64_t *keys, size_t n,
                                  int64_t *ret_bookings, struct hf_err *err)
{
    enum hf_status status;
    if ((status = on_holds(l, ST_OWNER_ERASE, keys, n, NULL, err)) != HF_OK ||
        (status = on_holds(l, ST_PAST_ERASE, keys, n, NULL, err)) != HF_OK ||
        (status = on_entries(l, ST_ADDRESS_ERASE, keys, n, err)) != HF_OK ||
        (status = on_holds(l, ST_JOBS_ERASE, keys, n, NULL, err)) != HF_OK)
        return status;
    return on_holds(l, ST_BUYER_ERASE, keys, n, ret_bookings, err);
}

/* Live entries are ended first (api/owners.c); one that came since then waits on for nobody. */
static enum hf_status erase_waits(struct ledger *l, const int64_t *keys, size_t n,
                                  struct hf_err *err)
{
    enum hf_status status = on_holds(l, ST_WAIT_ERASE, keys, n, NULL, err);
    return status == HF_OK ? on_entries(l, ST_ADDRESS_ERASE, keys, n, err) : status;
}

static enum hf_status erase_holds(struct ledger *l, struct erasure *x, struct hf_err *err)
{
    int64_t *keys = hf_alloc(SLICE_HOLDS * sizeof *keys), bookings = 0;
    size_t n = 0, found = 0;
    const struct db_value next[] = {db_int(x->after), db_int(INT64_MAX), db_int(SLICE_HOLDS)};
    enum hf_status status = ledger_read_ints(l, ST_HOLDS_AFTER, next, SLICE_HOLDS, keys, &n, err);
    if (status == HF_OK && n) {
        int64_t last = keys[n - 1];
        const struct db_value range[] = {db_int(x->after), db_int(last),
                                         db_text(x->owner, x->owner_len)};
        x->holds_done = n < SLICE_HOLDS;
        x->after = last;
        status = ledger_read_ints(l, ST_OWNER_FIND, range, SLICE_HOLDS, keys, &found, err);
        if (status == HF_OK && found)
            status = erase_buyer(l, keys, found, &bookings, err);
        for (size_t i = 0; status == HF_OK && i < found; i++)
            *vec_push(&x->holds) = keys[i];
        x->bookings += bookings;
        if (status == HF_OK)
            status = ledger_read_ints(l, ST_WAITS_OF_OWNER, range, SLICE_HOLDS, keys, &found, err);
        if (status == HF_OK && found)
            status = erase_waits(l, keys, found, err);
    } else {
        x->holds_done = true;
    }
    free(keys);
    return status;
}

static bool is_erased(const struct erasure *x, int64_t hold)
{
    size_t low = 0, high = x->holds.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (x->holds.v[mid] < hold)
            low = mid + 1;
        else
            high = mid;
    }
    return low < x->holds.n && x->holds.v[low] == hold;
}

/* An answer that is to be stored instead of another. */
struct rewritten {
    uint8_t hash[KEY_HASH_SIZE];
    struct buf body;
};
struct rewrites {
    VEC(struct rewritten) list;
};

static enum hf_status find_answers(struct ledger *l, struct erasure *x, struct rewrites *ret,
                                   size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_bytes(x->key_after, KEY_HASH_SIZE), db_int(SLICE_KEYS)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_KEYS_AFTER, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        size_t len, body_len;
        const void *hash = db_column_data(stmt, 0, &len);
        const char *body = db_column_data(stmt, 2, &body_len);
        hf_check(len == KEY_HASH_SIZE);
        memcpy(x->key_after, hash, len);
        ++*ret_n;
        struct buf out = {0};
        bool is_own = is_erased(x, db_column_int(stmt, 1));
        if (body && x->rewrite(body, body_len, x, is_own, &out)) {
            struct rewritten *r = vec_push(&ret->list);
            memcpy(r->hash, hash, len);
            r->body = out;
        } else {
            buf_close(&out);
        }
    }
    return status;
}

static enum hf_status erase_answers(struct ledger *l, struct erasure *x, struct hf_err *err)
{
    struct rewrites rewrites = {0};
    size_t n = 0;
    enum hf_status status = find_answers(l, x, &rewrites, &n, err);
    vec_clear(&l->args);
    for (size_t i = 0; i < rewrites.list.n; i++) {
        const struct rewritten *r = &rewrites.list.v[i];
        ledger_arg(l, db_bytes(r->hash, KEY_HASH_SIZE));
        ledger_arg(l, db_text(r->body.data, r->body.len));
    }
    if (status == HF_OK && rewrites.list.n)
        status = ledger_exec_args(l, ST_KEY_REWRITE, rewrites.list.n, NULL, err);
    x->answers += (int64_t)rewrites.list.n;
    x->done = n < SLICE_KEYS;
    for (size_t i = 0; i < rewrites.list.n; i++)
        buf_close(&rewrites.list.v[i].body);
    vec_close(&rewrites.list);
    return status;
}

/* A slice that fails leaves the erasure where it was, to be tried again. */
enum hf_status ledger_erase_slice(struct ledger *l, struct erasure *x, struct hf_err *err)
{
    const struct erasure before = *x;
    enum hf_status status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
    status = x->holds_done ? erase_answers(l, x, err) : erase_holds(l, x, err);
    if (status == HF_OK)
        status = ledger_commit(l, err);
    if (status == HF_OK)
        return HF_OK;
    ledger_rollback(l);
    size_t cap = x->holds.cap;
    int64_t *holds = x->holds.v;
    *x = before;
    x->holds.v = holds; /* which may have grown */
    x->holds.cap = cap;
    return status;
}
