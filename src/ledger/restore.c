/* What a restored ledger needs before a server may use it; backup.h says why.  It is written as a
 * batch of the engine is, by ledger_write, with the same conditions and counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/backup.h"
#include "ledger/ledger_internal.h"

#define EVENTS_PAGE 100
#define PAYMENTS_PAGE 1000
#define WAITS_PAGE 500
/* Fences that stay free at the end of an event's. */
#define FENCES_SPARE (INT64_C(1) << 36)

struct restoring {
    struct ledger *l;
    struct restored *report;
    struct ledger_batch batch; /* of one event, or some holds of it */
    struct clock_row clock;    /* as the batch leaves it */
};

static struct audit_row *log_row(struct restoring *r, enum audit_object object, int from, int to)
{
    struct audit_row *row = vec_push(&r->batch.audit);
    *row = (struct audit_row){.event = r->clock.event,
                              .seq = ++r->clock.seq,
                              .at = r->report->now,
                              .object = object,
                              .cause = CAUSE_RESTORE,
                              .item = -1,
                              .from = from,
                              .to = to,
                              .actor = ACTOR_SERVER};
    return row;
}

/* Gives a hold that is live, or that a rescue could revive, a new fence.  A live one also expires;
 * the server's own rules then give its places back. */
static void fence_off(void *ctx, size_t i, const struct hold_row *hold)
{
    struct restoring *r = ctx;
    bool is_live = hold->status == HOLD_ACTIVE && hold->expires_at > r->report->now;
    int64_t expires_at = is_live ? r->report->now : hold->expires_at;
    (void)i;
    struct audit_row *row = log_row(r, AUDIT_HOLD, (int)hold->status, (int)hold->status);
    row->hold = hold->id.key;
    row->fence = ++r->clock.fence;
    row->until = expires_at;
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
    row->prev = hold->last_seq;
    *vec_push(&r->batch.holds) = (struct hold_write){.hold = hold->id.key,
                                                     .fence_before = hold->fence,
                                                     .fence = row->fence,
                                                     .expires_before = hold->expires_at,
                                                     .expires_at = expires_at,
                                                     .seq_before = hold->last_seq,
                                                     .last_seq = row->seq,
                                                     .from = hold->status,
                                                     .to = hold->status};
    r->report->holds_ended += is_live;
    r->report->holds_fenced++;
}

static void ignore_area(void *ctx, uint32_t index, const struct area_row *row)
{
    (void)ctx, (void)index, (void)row;
}

static enum hf_status close_event(struct restoring *r, struct hf_err *err)
{
    enum event_status now;
    enum hf_status status = ledger_event_state(r->l, r->clock.event, &now, ignore_area, NULL, err);
    if (status != HF_OK || now != EVENT_OPEN)
        return status;
    (void)log_row(r, AUDIT_EVENT, EVENT_OPEN, EVENT_CLOSED);
    *vec_push(&r->batch.events) =
        (struct event_write){.event = r->clock.event, .from = EVENT_OPEN, .to = EVENT_CLOSED};
    r->report->events_closed++;
    return HF_OK;
}

static enum hf_status raise_fence(struct restoring *r, struct hf_err *err)
{
    int64_t room = (INT64_C(1) << HOLD_FENCE_BITS) - FENCES_SPARE - r->clock.fence;
    if (r->report->fence_margin > room)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "the fences of event %lld are at %lld and cannot be raised by %lld, but "
                          "by %lld: give a smaller --fence-margin",
                          (long long)r->clock.event, (long long)r->clock.fence,
                          (long long)r->report->fence_margin, (long long)(room > 0 ? room : 0));
    r->clock.fence += r->report->fence_margin;
    return HF_OK;
}

/* Writes what the batch has so far.  `before` is the clock row as the ledger has it. */
static enum hf_status write_batch(struct restoring *r, struct clock_row *before, struct hf_err *err)
{
    struct ledger_batch *b = &r->batch;
    *vec_push(&b->clocks) = (struct clock_write){.before = *before, .after = r->clock};
    enum hf_status status = ledger_write(r->l, b, err);
    *before = r->clock;
    vec_clear(&b->clocks);
    vec_clear(&b->events);
    vec_clear(&b->holds);
    vec_clear(&b->waits);
    vec_clear(&b->audit);
    vec_clear(&b->jobs_put);
    return status;
}

static int key_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* By the stored status: at the time 0 no hold is due. */
static enum hf_status fence_off_all(struct restoring *r, enum hold_status which,
                                    struct clock_row *before, struct hf_err *err)
{
    struct holds_query query = {
        .event = r->clock.event, .status = which, .limit = LEDGER_VISIT_CHUNK};
    int64_t keys[LEDGER_VISIT_CHUNK];
    size_t n;
    do {
        enum hf_status status = ledger_holds_list(r->l, &query, keys, &n, err);
        if (status != HF_OK || n == 0)
            return status;
        query.before = keys[n - 1];
        qsort(keys, n, sizeof *keys, key_order);
        if ((status = ledger_holds_visit(r->l, keys, n, fence_off, r, err)) != HF_OK ||
            (status = write_batch(r, before, err)) != HF_OK)
            return status;
    } while (n == LEDGER_VISIT_CHUNK);
    return HF_OK;
}

/* The buyer may have read the entry since the backup, so it counts as read now. */
static void renew_wait(struct restoring *r, const struct wait_row *wait)
{
    struct audit_row *row = log_row(r, AUDIT_WAIT, WAIT_WAITING, WAIT_WAITING);
    row->fence = HOLD_FIRST_FENCE(wait->id.key);
    row->quantity = wait->wish.quantity;
    row->prev = wait->last_seq;
    *vec_push(&r->batch.waits) = (struct wait_write){.entry = wait->id.key,
                                                     .rank_before = wait->rank,
                                                     .rank = wait->rank,
                                                     .read_before = wait->read_at,
                                                     .read_at = r->report->now,
                                                     .seq_before = wait->last_seq,
                                                     .last_seq = row->seq,
                                                     .from = WAIT_WAITING,
                                                     .to = WAIT_WAITING};
    r->report->waits++;
}

static enum hf_status renew_waits(struct restoring *r, struct clock_row *before, struct hf_err *err)
{
    struct wait_row *rows = hf_alloc(WAITS_PAGE * sizeof *rows);
    struct waits_query query = {
        .event = r->clock.event, .status = WAIT_WAITING, .limit = WAITS_PAGE};
    enum hf_status status;
    size_t n;
    do {
        status = ledger_waits_list(r->l, &query, rows, &n, err);
        query.before = n ? rows[n - 1].id.key : 0;
        for (size_t i = n; i-- > 0;) { /* a batch goes up */
            renew_wait(r, &rows[i]);
            wait_row_close(&rows[i]);
        }
        if (status == HF_OK && n)
            status = write_batch(r, before, err);
    } while (status == HF_OK && n == WAITS_PAGE);
    free(rows);
    return status;
}

/* Owes a poll of the payment.  It makes no call that changes anything, so its key is never used. */
static void owe_poll(struct restoring *r, int64_t booking, int64_t payment)
{
    *vec_push(&r->batch.jobs_put) =
        (struct job_row){.booking = booking,
                         .job = HOLD_KEY(r->clock.event, ++r->clock.fence),
                         .kind = JOB_POLL,
                         .status = JOB_OWED,
                         .payment_no = payment,
                         .created_at = r->report->now,
                         .due_at = r->report->now};
}

/* Every payment that has received money, or may have received some since the backup, is owed a look
 * at what the provider has. */
static enum hf_status owe_polls(struct restoring *r, struct clock_row *before, struct hf_err *err)
{
    int64_t first = HOLD_KEY(r->clock.event, 0);
    size_t n;
    do {
        const struct db_value args[] = {db_int(first), db_int(HOLD_KEY(r->clock.event + 1, 0)),
                                        db_int(PAYMENTS_PAGE)};
        struct db_stmt *stmt;
        bool is_row;
        n = 0;
        enum hf_status status = ledger_query(r->l, ST_PAYMENTS_UNPOLLED, args, &stmt, err);
        while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
            first = db_column_int(stmt, 0);
            owe_poll(r, first, db_column_int(stmt, 1));
            n++;
        }
        if (status == HF_OK && n)
            status = write_batch(r, before, err);
        if (status != HF_OK)
            return status;
    } while (n == PAYMENTS_PAGE);
    return HF_OK;
}

/* Inside the transaction. */
static enum hf_status restore_event(struct restoring *r, int64_t event, struct hf_err *err)
{
    struct clock_row before = {.event = event};
    enum hf_status status = ledger_clocks_read(r->l, &before, 1, err);
    if (status != HF_OK)
        return status;
    r->clock = before;
    r->clock.now = r->report->now;
    r->report->events++;
    if ((status = raise_fence(r, err)) != HF_OK || (status = close_event(r, err)) != HF_OK ||
        (status = write_batch(r, &before, err)) != HF_OK ||
        (status = fence_off_all(r, HOLD_ACTIVE, &before, err)) != HF_OK ||
        (status = fence_off_all(r, HOLD_EXPIRED, &before, err)) != HF_OK ||
        (status = renew_waits(r, &before, err)) != HF_OK)
        return status;
    return owe_polls(r, &before, err);
}

static enum hf_status restore_events(struct restoring *r, struct hf_err *err)
{
    int64_t keys[EVENTS_PAGE], before = 0;
    size_t n;
    do {
        enum hf_status status = ledger_event_keys(r->l, before, EVENTS_PAGE, keys, &n, err);
        for (size_t i = 0; i < n && status == HF_OK; i++)
            status = restore_event(r, before = keys[i], err);
        if (status != HF_OK)
            return status;
    } while (n == EVENTS_PAGE);
    return HF_OK;
}

static int64_t margin_since(int64_t elapsed_ms)
{
    if (elapsed_ms < RESTORE_FENCES_MIN / RESTORE_FENCES_PER_MS)
        return RESTORE_FENCES_MIN;
    if (elapsed_ms > RESTORE_FENCES_MAX / RESTORE_FENCES_PER_MS)
        return RESTORE_FENCES_MAX;
    return elapsed_ms * RESTORE_FENCES_PER_MS;
}

static enum hf_status restore(struct restoring *r, int64_t fence_margin, struct hf_err *err)
{
    struct restored *report = r->report;
    enum hf_status status;
    if ((status = ledger_read_int(r->l, ST_CLOCK_MAX, &report->as_of, err)) != HF_OK ||
        (status = ledger_now(r->l, &report->now, err)) != HF_OK)
        return status;
    report->fence_margin =
        fence_margin >= 0 ? fence_margin : margin_since(report->now - report->as_of);
    /* Jobs look at what the provider has before they act, since the calls may have been made after
     * the backup, under keys that the provider no longer knows. */
    if ((status = ledger_begin(r->l, err)) == HF_OK &&
        (status = ledger_exec(r->l, ST_JOBS_RESTORE, NULL, &report->jobs, err)) == HF_OK &&
        (status = restore_events(r, err)) == HF_OK &&
        (status = ledger_read_int(r->l, ST_POLLS_OWED, &report->payments, err)) == HF_OK)
        status = ledger_commit(r->l, err);
    if (status != HF_OK)
        ledger_rollback(r->l);
    return status;
}

enum hf_status ledger_make_ready(const char *path, const struct clock *clock, int64_t fence_margin,
                                 struct restored *ret, struct hf_err *err)
{
    struct restored report = {0};
    struct restoring r = {.report = &report};
    struct buf url = {0};
    buf_printf(&url, "sqlite:%s", path);
    buf_char(&url, '\0');
    enum hf_status status =
        ledger_open(url.data, &(struct db_options){.clock = clock, .writer = true}, &r.l, err);
    if (status == HF_OK)
        status = restore(&r, fence_margin, err);
    if (status == HF_OK)
        *ret = report;
    ledger_close(r.l);
    buf_close(&url);
    vec_close(&r.batch.clocks);
    vec_close(&r.batch.events);
    vec_close(&r.batch.holds);
    vec_close(&r.batch.waits);
    vec_close(&r.batch.audit);
    vec_close(&r.batch.jobs_put);
    return status;
}
