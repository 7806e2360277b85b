/* Which events are in memory, and how long each of them stays.  Part of the view.
 *
 *   not loaded --the loader builds it, its worker installs it--> loaded
 *   loaded --its worker lets it leave, if nobody has it pinned--> not loaded
 *
 * Any thread looks events up, without a lock; the event's worker alone installs them and lets them
 * leave.  So a user of the event on another thread pins it: a request until it has been answered, a
 * stream until it ends, a command that the engine makes for itself until it has been carried out.
 * The worker needs no pin.  Rendered documents have reference counts of their own (snapshot.h).
 *
 * Pins are counted in the event's slot, which stays for ever.  A thread counts its pin first and
 * looks second; the worker hides the event first and counts second:
 *
 *   a thread that takes it               the worker that lets it leave
 *   T1  add a pin to the slot            L1  slot.event = NULL
 *   T2  e = slot.event                   L2  are there no pins?  Then e is the worker's alone
 *   T3  if e is NULL: give the pin back  L3  else slot.event = e, as before
 *
 * T1, T2, L1 and L2 are sequentially consistent, so they have one order.  If T2 finds the event,
 * then T2 comes before L1, or after an L3.  In the first case T1 comes before L2, which finds the
 * pin unless it has been given back, and what was done with it then happened before L2.  Hence an
 * event that leaves is pinned by nobody, and nobody will find it again.
 *
 * An event that was read from the ledger before it left is a picture of its former life: it must
 * not be installed, for the ledger may have moved on meanwhile.  So the slot counts how often the
 * event has left, the loader notes that number before it reads, and view_install compares. */
#ifndef HF_VIEW_REGISTRY_H
#define HF_VIEW_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/keys.h"

struct event;

struct event_slot {
    _Atomic(struct event *) event; /* NULL: not loaded */
    _Atomic uint64_t pins;         /* the low half; the high half counts uses */
    _Atomic uint32_t departures;   /* how often it has left */
};

/* Of an event: where it is registered.  The worker writes it when the event enters and leaves. */
struct event_registration {
    struct event_slot *slot; /* where it is pinned, also by other threads; NULL: not installed */
    uint32_t departures;     /* the loader's: how often it had left when it was read */
    size_t index;            /* in registry.loaded */
};

#define SLOT_USE ((uint64_t)1 << 32)
static inline uint32_t slot_pins(uint64_t pins) { return (uint32_t)pins; }
static inline uint32_t slot_uses(uint64_t pins) { return (uint32_t)(pins >> 32); }

/* Slots come in chunks, which are made when they are first needed. */
#define REGISTRY_CHUNK_BITS 10
#define REGISTRY_CHUNK_SLOTS (1u << REGISTRY_CHUNK_BITS)
#define REGISTRY_CHUNKS ((EVENT_KEY_MAX + 1) >> REGISTRY_CHUNK_BITS)

struct registry {
    _Atomic(struct event_slot *) chunks[REGISTRY_CHUNKS];
    VEC(struct event *) loaded; /* the worker's */
};

void registry_close(struct registry *r); /* frees the events, too */

/* ---- any thread ---- */

/* The event if it is loaded, else NULL: for its worker, and for a thread that has pinned it. */
struct event *registry_find(const struct registry *r, int64_t event);
/* Pins the event and returns it; NULL: it is not loaded.  With `is_use` the event counts as asked
 * for, and stays for another while. */
struct event *registry_take(const struct registry *r, int64_t event, bool is_use);
/* Calls `each` with every loaded event, pinned; `each` gives it back. */
void registry_take_all(const struct registry *r, void (*each)(void *ctx, struct event *e),
                       void *ctx);
uint32_t registry_departures(const struct registry *r, int64_t event);

/* ---- the worker ---- */

/* Puts the event where other threads find it. */
void registry_install(struct registry *r, struct event *e);
/* Hides the event from all threads.  Returns false, with nothing changed, if somebody has it
 * pinned.  Otherwise it is the caller's. */
bool registry_remove(struct registry *r, struct event *e);

#endif
