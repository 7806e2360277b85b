/* Does the ledger give this seat to this hold?  The one rule about the gate's entries (I12), for
 * the reconciler, which repairs them, and for `holdfast verify --gate`, which reports them.  Pure;
 * reads neither gate nor ledger.
 *
 * Read the gate before the ledger: then a hold that has ended in the ledger had ended, or was about
 * to, when its entry was read.  (Should a rescue revive it in this moment, the seat is left without
 * an entry, which costs speed and nothing else.)  Servers tell the gate a moment after the ledger,
 * so an entry that looks wrong once may be on its way out: it is wrong if a second scan finds it
 * too. */
#ifndef HF_GATE_CHECK_H
#define HF_GATE_CHECK_H

#include "base/vec.h"
#include "model/rows.h"

/* A seat's entry in the gate. */
struct gate_entry {
    int64_t event, hold;
    uint32_t seat;
};

enum gate_entry_state {
    GATE_ENTRY_RIGHT,   /* the hold is live and lists the seat */
    GATE_ENTRY_FOREIGN, /* there is no such hold, or it does not list this seat of this event */
    GATE_ENTRY_ENDED,   /* the hold lists the seat but has ended */
};
/* `row` is the ledger's row of entry->hold, with id.key 0 if there is none; `now` is the ledger's
 * time. */
enum gate_entry_state gate_entry_check(const struct gate_entry *entry, const struct hold_row *row,
                                       int64_t now);

/* The entries that one scan found. */
struct gate_entries {
    VEC(struct gate_entry) list;
};
/* Sorts the list, which gate_entries_has requires. */
void gate_entries_sort(struct gate_entries *entries);
/* Returns true if the scan found this very entry. */
bool gate_entries_has(const struct gate_entries *entries, const struct gate_entry *entry);
void gate_entries_close(struct gate_entries *entries);

#endif
