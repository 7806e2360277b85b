/* What connections read of waiting lists from the simulated ledger. */
#include <string.h>

#include "sim/tables.h"

enum hf_status ledger_waits_live(struct ledger *l, int64_t event,
                                 void (*wait)(void *ctx, const struct wait_row *row), void *ctx,
                                 int64_t *ret_last, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    const struct sim_event *e = sim_event(l->sim, event);
    for (size_t i = 0; status == HF_OK && e && i < e->waits.n; i++)
        if (wait_is_live(e->waits.v[i].status))
            wait(ctx, &e->waits.v[i]);
    if (status == HF_OK)
        *ret_last = e && e->waits.n ? e->waits.v[e->waits.n - 1].number : 0;
    return status;
}

enum hf_status ledger_wait_read(struct ledger *l, int64_t entry, struct wait_row *row,
                                int64_t *ret_ahead, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct wait_row *found = sim_wait(l->sim, entry);
    *row = found ? sim_wait_read(l->sim, found) : (struct wait_row){0};
    *ret_ahead = 0;
    const struct sim_event *e = sim_event(l->sim, HOLD_EVENT(entry));
    for (size_t i = 0; found && found->status == WAIT_WAITING && i < e->waits.n; i++)
        *ret_ahead += e->waits.v[i].status == WAIT_WAITING && e->waits.v[i].rank < found->rank;
    return HF_OK;
}

/* No test of this folder lists entries. */
enum hf_status ledger_waits_list(struct ledger *l, const struct waits_query *query,
                                 struct wait_row *ret, size_t *ret_n, struct hf_err *err)
{
    (void)query, (void)ret;
    *ret_n = 0;
    return sim_enter(l, SIM_READ, err);
}

enum hf_status ledger_waited_for(struct ledger *l, int64_t after, size_t limit, int64_t *ret_events,
                                 size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    for (size_t k = (size_t)after + 1; k < l->sim->events.n && n < limit; k++) {
        const struct sim_event *e = &l->sim->events.v[k];
        bool is_waited_for = false;
        for (size_t i = 0; i < e->waits.n; i++)
            is_waited_for |= e->waits.v[i].status == WAIT_WAITING;
        if (is_waited_for)
            ret_events[n++] = (int64_t)k;
    }
    *ret_n = n;
    return HF_OK;
}
