/* See fairness.h. */
#include "engine/fairness.h"

#include "engine/load.h"

#define PAGE_ENTRIES 1000
#define WAITS_AT_ONCE 500

/* The worker goes on at once after a batch that had no turns left, which may have been those of
 * other events. */
#define IDLE_MS 60000

static bool undo(void *ctx, const struct audit_row *row)
{
    fair_undo(ctx, row);
    return true;
}

static bool replay(void *ctx, const struct audit_row *row)
{
    fair_row(ctx, row);
    return true;
}

/* Passes on the rows behind `after`, up to `last`. */
static enum hf_status each_row(struct ledger *l, struct fair *f, int64_t after, int64_t last,
                               bool (*row)(void *ctx, const struct audit_row *row),
                               struct hf_err *err)
{
    enum hf_status status = HF_OK;
    int64_t before;
    do {
        before = after;
        status = ledger_log_page(l, f->event->def->id.key, &after, last, PAGE_ENTRIES, row, f, err);
    } while (status == HF_OK && after != before && after < last);
    return status;
}

static enum hf_status each_entry(struct ledger *l, struct fair *f, struct hf_err *err)
{
    struct wait_row *rows = hf_alloc(WAITS_AT_ONCE * sizeof *rows);
    struct waits_query query = {.event = f->event->def->id.key, .limit = WAITS_AT_ONCE};
    enum hf_status status;
    size_t n;
    do {
        n = 0;
        status = ledger_waits_list(l, &query, rows, &n, err);
        for (size_t i = 0; i < n; i++) {
            fair_entry(f, &rows[i]);
            query.before = rows[i].id.key;
            wait_row_close(&rows[i]);
        }
    } while (status == HF_OK && n == WAITS_AT_ONCE);
    free(rows);
    return status;
}

static enum hf_status judge(struct ledger *l, struct fair *f, int64_t after, struct hf_err *err)
{
    int64_t now = 0, last = f->event->clock.seq;
    enum hf_status status;
    if ((status = ledger_now(l, &now, err)) != HF_OK || (status = each_entry(l, f, err)) != HF_OK ||
        (status = each_row(l, f, after, last, undo, err)) != HF_OK)
        return status;
    fair_begin(f, after);
    if ((status = each_row(l, f, after, last, replay, err)) == HF_OK)
        fair_end(f, now);
    return status;
}

/* Finds out from where on the log can be judged.  A whole event that was pruned has lost entries. */
static enum hf_status find_start(struct ledger *l, int64_t event, bool *ret_known,
                                 int64_t *ret_after, struct hf_err *err)
{
    struct wait_row row = {0};
    size_t n = 0;
    struct pruned pruned = {0};
    const struct waits_query any = {.event = event, .limit = 1};
    enum hf_status status = ledger_waits_list(l, &any, &row, &n, err);
    wait_row_close(&row);
    if (status == HF_OK)
        status = ledger_pruned(l, event, &pruned, err);
    *ret_known = n && !pruned.log_seq;
    *ret_after = pruned.seq;
    return status;
}

static enum hf_status judge_known(struct ledger *l, int64_t event, bool *ret_known,
                                  struct fair *ret, struct hf_err *err)
{
    int64_t after = 0;
    struct event *e = NULL;
    enum hf_status status = find_start(l, event, ret_known, &after, err);
    if (status != HF_OK || !*ret_known)
        return status;
    status = load_event(l, event, &e, err);
    *ret_known = e != NULL;
    if (status != HF_OK || !e)
        return status;
    fair_load(ret, e);
    ret->idle_ms = IDLE_MS;
    status = judge(l, ret, after, err);
    if (status != HF_OK)
        fair_close(ret);
    return status;
}

enum hf_status fairness_judge(struct ledger *l, int64_t event, bool *ret_known, struct fair *ret,
                              struct hf_err *err)
{
    enum hf_status status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
    status = judge_known(l, event, ret_known, ret, err);
    ledger_rollback(l);
    return status;
}
