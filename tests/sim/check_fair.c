/* Claims that nobody on a waiting list was passed over (I17), by the judge of rules/fair.h; see
 * check.h. */
#include "sim/check.h"

#include "sim/tables.h"

void judge_init(struct judge *j, const struct sim_ledger *ledger, int64_t event, uint32_t turns_max)
{
    const struct sim_event *e = sim_event(ledger, event);
    *j = (struct judge){.event = event};
    hf_check(!e->log.n || e->log.n == 1); /* its places are free */
    fair_init(&j->fair, sim_def_copy(e->def));
    j->fair.turns_max = turns_max;
    j->fair.idle_ms = INT64_MAX; /* judge_rest looks for what is idle */
}

void judge_close(struct judge *j) { fair_close(&j->fair); }

static void accept(const struct judge *j)
{
    const struct unfair *first = &j->fair.list[0];
    if (j->fair.n)
        fail_msg("%s: event %d, row %d, entry %d, hold %d, other entry %d",
                 unfair_text(first->kind), (int)j->event, (int)first->seq,
                 (int)HOLD_FIRST_FENCE(first->entry), (int)HOLD_FIRST_FENCE(first->hold),
                 (int)HOLD_FIRST_FENCE(first->other));
}

void judge_log(struct judge *j, const struct sim_ledger *ledger)
{
    const struct sim_event *e = sim_event(ledger, j->event);
    for (; j->n_terms < e->past.n; j->n_terms++)
        fair_terms(&j->fair, &e->past.v[j->n_terms].terms, e->past.v[j->n_terms].seq);
    for (; j->n_rows < e->log.n; j->n_rows++) {
        const struct audit_row *row = &e->log.v[j->n_rows];
        int64_t entry = HOLD_KEY(row->event, row->fence);
        if (row->object == AUDIT_WAIT && row->from == WAIT_NONE)
            fair_wish(&j->fair, entry, &sim_wait(ledger, entry)->wish);
        fair_row(&j->fair, row);
    }
    accept(j);
}

void judge_rest(struct judge *j, const struct sim_ledger *ledger)
{
    judge_log(j, ledger);
    j->fair.idle_ms = 0;
    fair_end(&j->fair, INT64_MAX);
    j->fair.idle_ms = INT64_MAX;
    accept(j);
}
