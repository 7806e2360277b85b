/* See verify_waits.h.  Reads one event after another, each in a transaction of its own. */
#include "cli/verify_waits.h"

#include "engine/fairness.h"

#define EVENTS_AT_ONCE 100

typedef long long ll;

static void tell(struct verify_report *report, int64_t event, const struct unfair *u)
{
    switch (u->kind) {
    case UNFAIR_TAKEN:
        if (u->hold)
            verify_violation(report, VERIFY_TURNS,
                             "event %lld: hold %lld took places that fitted entry %lld, seq %lld",
                             (ll)event, (ll)u->hold, (ll)u->entry, (ll)u->seq);
        else
            verify_violation(report, VERIFY_TURNS,
                             "event %lld: places were blocked that fitted entry %lld, seq %lld",
                             (ll)event, (ll)u->entry, (ll)u->seq);
        return;
    case UNFAIR_ORDER:
        verify_violation(report, VERIFY_TURNS,
                         "event %lld: hold %lld was offered to entry %lld before entry %lld, "
                         "seq %lld",
                         (ll)event, (ll)u->hold, (ll)u->other, (ll)u->entry, (ll)u->seq);
        return;
    case UNFAIR_IDLE:
        verify_violation(report, VERIFY_TURNS,
                         "event %lld: places stayed free that fitted entry %lld, seq %lld",
                         (ll)event, (ll)u->entry, (ll)u->seq);
        return;
    case UNFAIR_TWICE:
        verify_violation(report, VERIFY_TURNS,
                         "event %lld: entry %lld was offered hold %lld after another one, seq %lld",
                         (ll)event, (ll)u->entry, (ll)u->hold, (ll)u->seq);
        return;
    case UNFAIR_KINDS:
        break;
    }
}

static enum hf_status judge_event(struct ledger *l, int64_t event, struct verify_report *report,
                                  struct hf_err *err)
{
    struct fair f;
    bool is_known = false;
    enum hf_status status = fairness_judge(l, event, &is_known, &f, err);
    if (status != HF_OK || !is_known)
        return status;
    struct verify_check *check = &report->checks[VERIFY_TURNS];
    check->rows += f.judged;
    for (int64_t i = 0; i < f.n && i < UNFAIR_LISTED; i++)
        tell(report, event, &f.list[i]);
    if (f.n > UNFAIR_LISTED) {
        check->violations += f.n - UNFAIR_LISTED;
        report->violations += f.n - UNFAIR_LISTED;
    }
    fair_close(&f);
    return HF_OK;
}

enum hf_status verify_waits(const char *url, const struct clock *clock,
                            struct verify_report *report, struct hf_err *err)
{
    const struct db_options options = {.clock = clock};
    struct ledger *l = NULL;
    int64_t keys[EVENTS_AT_ONCE], before = 0;
    size_t n;
    if (report->violations)
        return HF_OK;
    enum hf_status status = ledger_open(url, &options, &l, err);
    if (status != HF_OK)
        return status;
    do {
        n = 0;
        status = ledger_event_keys(l, before, EVENTS_AT_ONCE, keys, &n, err);
        for (size_t i = 0; status == HF_OK && i < n; i++)
            status = judge_event(l, before = keys[i], report, err);
    } while (status == HF_OK && n == EVENTS_AT_ONCE);
    ledger_close(l);
    return status;
}
