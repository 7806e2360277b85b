/* Finds out whether a COMMIT happened whose answer was lost (I14): the batch wrote something that
 * no other batch can have written, and the ledger either has it or has not.  Called by the worker,
 * on a connection that may be a new one.
 *
 * Taking the batch's locks first waits for the lost transaction, should the database still be at
 * it. After that:
 *
 *   found, shared database   Commit.  The lost COMMIT may have been cut short while it waited for a
 *                            standby; a commit behind it waits for the standby again.
 *   absent, shared database  It was rolled back, and will not come back.
 *   the same, but it asked   It may still be on its way.  It assumes the fences that the view had:
 *   for nothing first        committing larger ones makes sure that it fails.
 *   found, SQLite            It happened.
 *   absent, SQLite           A failed fsync may have left a commit record that a crash would bring
 *                            back: committing something over it makes sure that it does not. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"

/* ---- what only this batch can have written ---- */

static enum hf_status find_event(struct ledger *l, const struct event_def *want, bool *ret_found,
                                 struct hf_err *err)
{
    struct event_def *def = NULL;
    struct clock_row clock;
    enum hf_status status = ledger_event_read(l, want->id.key, &def, &clock, err);
    *ret_found = def && id_secret_equal(def->id.secret, want->id.secret);
    event_def_free(def);
    return status;
}

static enum hf_status find_hold(struct ledger *l, const struct hold_row *want, bool *ret_found,
                                struct hf_err *err)
{
    struct hold_row row = {0};
    enum hf_status status = ledger_holds_read(l, &want->id.key, 1, &row, err);
    *ret_found = row.id.key && id_secret_equal(row.id.secret, want->id.secret);
    hold_row_close(&row);
    return status;
}

static enum hf_status find_wait(struct ledger *l, const struct wait_row *want, bool *ret_found,
                                struct hf_err *err)
{
    struct wait_row row;
    int64_t ahead;
    enum hf_status status = ledger_wait_read(l, want->id.key, &row, &ahead, err);
    *ret_found = row.id.key && id_secret_equal(row.id.secret, want->id.secret);
    wait_row_close(&row);
    return status;
}

static enum hf_status find_booking(struct ledger *l, const struct booking_row *want,
                                   bool *ret_found, struct hf_err *err)
{
    struct booking_row row = {0};
    enum hf_status status = ledger_booking_read(l, want->id.key, &row, err);
    *ret_found = row.id.key && id_secret_equal(row.id.secret, want->id.secret);
    booking_row_close(&row);
    return status;
}

static enum hf_status find_answer(struct ledger *l, const struct key_row *want, int64_t now,
                                  bool *ret_found, struct hf_err *err)
{
    const uint8_t *hash = want->hash;
    struct key_row row = {0};
    enum hf_status status = ledger_keys_read(l, &hash, 1, now, &row, err);
    *ret_found = row.found && row.created_at == want->created_at &&
                 memcmp(row.request, want->request, KEY_HASH_SIZE) == 0;
    key_row_close(&row);
    return status;
}

static bool same_row(const struct audit_row *a, const struct audit_row *b)
{
    return a->seq == b->seq && a->at == b->at && a->object == b->object && a->cause == b->cause &&
           a->item == b->item && a->quantity == b->quantity && a->from == b->from &&
           a->to == b->to && a->hold == b->hold && a->booking == b->booking &&
           a->fence == b->fence && a->until == b->until && a->prev == b->prev &&
           a->channel == b->channel && a->type == b->type;
}

/* The rows of the batch that are about the event of its last row; they stand together. */
static struct audit_row *rows_of_last(const struct ledger_batch *b, size_t *ret_n)
{
    size_t first = b->audit.n - 1;
    while (first > 0 && b->audit.v[first - 1].event == b->audit.v[first].event)
        first--;
    *ret_n = b->audit.n - first;
    return &b->audit.v[first];
}

static enum hf_status find_log_rows(struct ledger *l, const struct audit_row *want, size_t n_want,
                                    bool *ret_found, struct hf_err *err)
{
    const struct audit_query query = {
        .event = want->event, .after = want->seq - 1, .limit = n_want};
    struct audit_entry *entries = hf_alloc(n_want * sizeof *entries);
    size_t n = 0;
    enum hf_status status = ledger_audit_read(l, &query, entries, &n, err);
    *ret_found = status == HF_OK && n == n_want;
    for (size_t i = 0; *ret_found && i < n; i++)
        *ret_found = same_row(&entries[i].row, &want[i]);
    free(entries);
    return status;
}

/* The log does not say what the terms of an event became.  Another server's change at the same
 * moment has the same row, so the terms must be ours too, unless something came after that row. */
static enum hf_status find_terms(struct ledger *l, const struct event_write *want, int64_t last_seq,
                                 bool *ret_found, struct hf_err *err)
{
    struct event_terms terms = {0};
    struct clock_row clock = {.event = want->event};
    enum hf_status status = ledger_clocks_read(l, &clock, 1, err);
    if (status != HF_OK || clock.seq > last_seq)
        return status;
    status = ledger_terms_read(l, want->event, &terms, err);
    *ret_found = status == HF_OK && event_terms_equal(&terms, want->terms);
    event_terms_close(&terms);
    return status;
}

/* Looks for what the batch wrote to the log of one of its events.  Rows of another server that
 * equal ours in every field, whoever the actor is, did the very same thing. */
static enum hf_status find_rows(struct ledger *l, const struct ledger_batch *b, bool *ret_found,
                                struct hf_err *err)
{
    size_t n;
    const struct audit_row *rows = rows_of_last(b, &n);
    enum hf_status status = find_log_rows(l, rows, n, ret_found, err);
    for (size_t i = 0; status == HF_OK && *ret_found && i < b->events.n; i++)
        if (b->events.v[i].event == rows->event && b->events.v[i].terms)
            status = find_terms(l, &b->events.v[i], rows[n - 1].seq, ret_found, err);
    return status;
}

/* Looks for a secret, if the batch made one; else for a stored answer, or for rows of the log.
 * Nothing of these is ever changed, so it does not matter what came after the batch. */
static enum hf_status find_evidence(struct ledger *l, const struct ledger_batch *b,
                                    const struct event_def *created, int64_t now, bool *ret_found,
                                    struct hf_err *err)
{
    *ret_found = false;
    if (created)
        return find_event(l, created, ret_found, err);
    if (b->holds_new.n)
        return find_hold(l, &b->holds_new.v[0], ret_found, err);
    if (b->waits_new.n)
        return find_wait(l, &b->waits_new.v[0], ret_found, err);
    if (b->bookings_new.n)
        return find_booking(l, &b->bookings_new.v[0], ret_found, err);
    if (b->keys.n)
        return find_answer(l, &b->keys.v[0], now, ret_found, err);
    return b->audit.n ? find_rows(l, b, ret_found, err) : HF_OK;
}

/* ---- the transaction that resolves it ---- */

/* Locks the clock rows of the batch; on SQLite that of event 0 too, which ledger_commit_touch
 * writes. */
static enum hf_status lock_clocks(struct ledger *l, const struct clock_row *clocks, size_t n,
                                  int64_t *ret_now, struct hf_err *err)
{
    VEC(struct clock_row) rows = {0};
    if (!ledger_has_others(l) && (!n || clocks[0].event != 0))
        vec_push(&rows)->event = 0;
    for (size_t i = 0; i < n; i++)
        vec_push(&rows)->event = clocks[i].event;
    enum hf_status status = ledger_lock(l, rows.v, rows.n, ret_now, err);
    vec_close(&rows);
    return status;
}

/* Leaves out a fence of each event. */
static enum hf_status skip_fences(struct ledger *l, const struct clock_row *clocks, size_t n,
                                  struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, ST_FENCE_SKIP, &stmt, err);
    if (status != HF_OK)
        return status;
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++)
        ledger_arg_int(l, clocks[i].event);
    status = stmt->driver->expect_many(stmt, "event_clock", l->args.v, n, err);
    vec_clear(&l->args);
    return status;
}

/* Ends the transaction as the table at the top says. */
static enum hf_status conclude(struct ledger *l, bool found, bool may_arrive, int64_t now,
                               const struct clock_row *clocks, size_t n, struct hf_err *err)
{
    bool shared = ledger_has_others(l);
    enum hf_status status = HF_OK;
    if (shared && !found && may_arrive)
        status = skip_fences(l, clocks, n, err);
    if (status == HF_OK && shared && (found || may_arrive))
        return ledger_commit(l, err);
    if (status == HF_OK && !shared && !found)
        return ledger_commit_touch(l, now, err);
    ledger_rollback(l);
    return status;
}

enum hf_status ledger_resolve(struct ledger *l, const struct ledger_batch *b,
                              const struct clock_row *clocks, size_t n_clocks,
                              const struct event_def *created, bool assumed, bool *ret_happened,
                              struct hf_err *err)
{
    int64_t now = 0;
    bool found = false;
    enum hf_status status;
    if ((status = ledger_begin(l, err)) != HF_OK ||
        (status = lock_clocks(l, clocks, n_clocks, &now, err)) != HF_OK ||
        (status = find_evidence(l, b, created, now, &found, err)) != HF_OK ||
        (status = conclude(l, found, assumed, now, clocks, n_clocks, err)) != HF_OK) {
        ledger_rollback(l);
        return status;
    }
    *ret_happened = found;
    return HF_OK;
}
