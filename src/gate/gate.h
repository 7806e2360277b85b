/* The gate: a fast filter in front of the ledger that several servers share, in Redis.  It says no
 * to most of those who want what another server is selling, before the ledger is asked.  It may be
 * wrong, empty or gone at any moment: a yes is only leave to ask the ledger, and a lost gate costs
 * speed, never a seat.  A handle belongs to one thread at a time.
 *
 *   seat:{EVENT}:SEAT   "c:TOKEN" for GATE_CLAIM_MS while a batch is on its way to the ledger, then
 *                       the hold's key in decimal, PX what is left of the hold.  EVENT and SEAT are
 *                       the ledger's numbers; the braces keep an event in one slot of a cluster.
 *   area:{EVENT}:AREA   "SEQ AVAILABLE": places left as of that seq of the event.  Written after
 *                       commits, never counted up or down, so that it cannot drift; gone after its
 *                       TTL.  A missing one has no opinion.
 *
 * Every call but gate_look is one exchange.  HF_UNREACHABLE and HF_UNKNOWN, the only ways to fail,
 * mean the same to the caller: go on without the gate.  The next call connects anew. */
#ifndef HF_GATE_GATE_H
#define HF_GATE_GATE_H

#include "base/clock.h"
#include "holdfast.h"

#define GATE_CLAIM_MS 5000
#define GATE_TOKEN_SIZE 16 /* random, one a batch: what the batch has claimed is its own */
#define GATE_TIMEOUT_MS 250

struct gate;

/* Checks the URL (HF_BAD_REQUEST, in words, without the password); connects on first use.
 * `timeout_ms` bounds a call, connecting included; 0: GATE_TIMEOUT_MS. */
enum hf_result gate_open(const char *url, const struct clock *clock, int64_t timeout_ms,
                         struct gate **ret, struct hf_fault *fault);
void gate_close(struct gate *g); /* accepts NULL */
/* Does it answer? */
enum hf_result gate_ping(struct gate *g, struct hf_fault *fault);

/* ---- before the ledger ---- */

struct gate_area {
    uint32_t area, quantity;
};
/* One hold's wish: all of it or nothing. */
struct gate_claim {
    int64_t event;
    const uint32_t *seats;
    const struct gate_area *areas;
    uint32_t n_seats, n_areas;
    /* out */
    uint32_t *taken; /* room for n_seats: those of them that another has, in their order */
    uint32_t n_taken;
    int64_t short_area; /* the first area with too few places, -1: none */
    int64_t available;  /* how many it has */
};
static inline bool gate_claim_granted(const struct gate_claim *c)
{
    return c->n_taken == 0 && c->short_area < 0;
}
/* A script a claim.  A seat that has this token already is granted again, so claims of one batch do
 * not stand in each other's way.  Of a refused claim no seat is kept that was not the token's
 * before.  What says nothing readable stands in nobody's way.  On failure every claim reads as
 * granted: nobody has objected.  At most GATE_CLAIM_KEYS_MAX seats and areas a claim. */
#define GATE_CLAIM_KEYS_MAX 4000
enum hf_result gate_claim(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                          struct gate_claim *claims, size_t n, struct hf_fault *fault);

/* ---- after the ledger ---- */

/* What a seat became. */
struct gate_seat {
    int64_t event;
    uint32_t seat;
    int64_t hold;   /* 0: nobody's; only a claim of `token` is given back */
    int64_t ttl_ms; /* > 0: the hold has it for so long, counted from the call, however late the
                     * server hears of it.  Else: it had it and has it no more */
};
/* What is left of an area.  ttl_ms 0: the count is deleted, whatever it says. */
struct gate_count {
    int64_t event, seq, available, ttl_ms; /* ttl_ms > 0 */
    uint32_t area;
};
/* Seats come grouped by event.  A hold's seat replaces a claim, an older hold or nothing, never a
 * newer hold (the larger key).  A seat that is free again is deleted if this hold or an older one,
 * or a claim of `token`, has it.  A count replaces one of an earlier seq.  When this returns
 * HF_DONE the gate has done it all. */
enum hf_result gate_settle(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                           const struct gate_seat *seats, size_t n_seats,
                           const struct gate_count *counts, size_t n_counts,
                           struct hf_fault *fault);

/* ---- for the reconciler and for verify ---- */

/* What the gate has.  Claims are not told: they end by themselves.  None of these may use the
 * handle. */
struct gate_sight {
    void *ctx;
    void (*seat)(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms);
    void (*count)(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available);
    /* A key of ours (by its form; no other is told) that says nothing readable, or never ends. */
    void (*strange)(void *ctx, const char *key, size_t len);
    /* Asked every thousand keys or so; true: enough, gate_look ends with HF_UNREACHABLE.  NULL:
     * never. */
    bool (*stop)(void *ctx);
};
/* All of it, by SCAN, an exchange or two every thousand keys of the database: what changes
 * meanwhile may be told, or not, or twice. */
enum hf_result gate_look(struct gate *g, const struct gate_sight *sight, struct hf_fault *fault);
/* Delete keys that `strange` named.  One that has become readable since goes too: it costs speed.
 */
enum hf_result gate_drop(struct gate *g, const char *const *keys, const size_t *lens, size_t n,
                         struct hf_fault *fault);

#endif
