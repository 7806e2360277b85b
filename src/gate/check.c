/* See check.h. */
#include "gate/check.h"

#include <stdlib.h>

static bool is_live(const struct hold_row *row, int64_t now)
{
    return (row->status == HOLD_ACTIVE && row->expires_at > now) || row->status == HOLD_CONFIRMED;
}

static bool lists_seat(const struct hold_row *row, uint32_t seat)
{
    for (uint32_t i = 0; i < row->n_seats; i++)
        if (row->seats[i] == seat)
            return true;
    return false;
}

enum gate_entry_state gate_entry_check(const struct gate_entry *entry, const struct hold_row *row,
                                       int64_t now)
{
    if (!row->id.key || row->event != entry->event || !lists_seat(row, entry->seat))
        return GATE_ENTRY_FOREIGN;
    return is_live(row, now) ? GATE_ENTRY_RIGHT : GATE_ENTRY_ENDED;
}

static int entry_order(const void *a, const void *b)
{
    const struct gate_entry *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
           : x->seat != y->seat ? (x->seat > y->seat) - (x->seat < y->seat)
                                : (x->hold > y->hold) - (x->hold < y->hold);
}

void gate_entries_sort(struct gate_entries *entries)
{
    if (entries->list.n > 1)
        qsort(entries->list.v, entries->list.n, sizeof *entries->list.v, entry_order);
}

bool gate_entries_has(const struct gate_entries *entries, const struct gate_entry *entry)
{
    return entries->list.n &&
           bsearch(entry, entries->list.v, entries->list.n, sizeof *entry, entry_order);
}

void gate_entries_close(struct gate_entries *entries) { vec_close(&entries->list); }
