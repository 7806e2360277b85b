/* The gate is a fast filter in front of the ledger that several servers share, in Redis.  It
 * refuses most requests for seats that another server is selling, before the ledger is asked.  It
 * may be wrong, empty or gone at any moment: a granted claim is only leave to ask the ledger, and a
 * lost gate costs speed, never a seat.  A handle belongs to one thread at a time.
 *
 * - seat:{EVENT}:SEAT is "c:TOKEN" for GATE_CLAIM_MS while a batch is on its way to the ledger.
 *   After that it is the key of the hold in decimal, for the rest of the hold.  EVENT and SEAT are
 *   the ledger's numbers; the braces keep an event in one slot of a cluster.
 * - area:{EVENT}:AREA is "SEQ AVAILABLE", the places left as of that seq of the event.  Servers
 *   write it after a commit and never count it up or down, so it cannot drift; it ends with its
 *   TTL.  An area without a count is never refused.
 *
 * A worker claims before its batch asks the ledger, and settles after the commit: the entries of
 * winners get the TTL of their hold, those of losers are given back.
 *
 * Every call but gate_scan and gate_settle_later is one exchange; one more if Redis has forgotten
 * the scripts, and one more to ask for its clock, first and after every failure.  A call fails
 * with HF_UNREACHABLE or HF_UNKNOWN, which mean the same to the caller: go on without the gate.
 * The next call connects again. */
#ifndef HF_GATE_GATE_H
#define HF_GATE_GATE_H

#include "base/clock.h"
#include "holdfast.h"

#define GATE_CLAIM_MS 5000
/* Random bytes, one token per batch: it marks the claims of the batch. */
#define GATE_TOKEN_SIZE 16
#define GATE_TIMEOUT_MS 250

struct gate;

/* Checks the URL, and connects on first use.  A bad URL is HF_BAD_REQUEST, with a message that does
 * not contain the password.  `timeout_ms` bounds a call, connecting included; 0: GATE_TIMEOUT_MS.
 */
enum hf_result gate_open(const char *url, const struct clock *clock, int64_t timeout_ms,
                         struct gate **ret, struct hf_fault *fault);
void gate_close(struct gate *g); /* accepts NULL */
/* Does its password go to another machine without TLS? */
bool gate_shows_password(const struct gate *g);
/* Tests whether the gate answers. */
enum hf_result gate_ping(struct gate *g, struct hf_fault *fault);

/* ---- before the ledger ---- */

struct gate_area {
    uint32_t area, quantity;
};
/* The places that one hold asks for.  The claim is granted as a whole or refused as a whole. */
struct gate_claim {
    int64_t event;
    const uint32_t *seats;
    const struct gate_area *areas;
    uint32_t n_seats, n_areas;
    /* out */
    uint32_t *taken; /* the seats that another hold or claim has, in order; room for n_seats */
    uint32_t n_taken;
    int64_t short_area; /* the first area with too few places; -1: none */
    int64_t available;  /* the places that area has */
};
static inline bool gate_claim_granted(const struct gate_claim *c)
{
    return c->n_taken == 0 && c->short_area < 0;
}
/* Claims with one script per claim.  A seat that carries this token already is granted again, so
 * claims of one batch do not block each other.  A refused claim leaves no seat behind but those
 * that carried the token before.  An entry that cannot be read blocks no claim.  If the call fails,
 * every claim reads as granted.  A claim has at most GATE_CLAIM_KEYS_MAX seats and areas. */
#define GATE_CLAIM_KEYS_MAX 4000
enum hf_result gate_claim(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                          struct gate_claim *claims, size_t n, struct hf_fault *fault);

/* ---- after the ledger ---- */

/* What became of a seat. */
struct gate_seat {
    int64_t event;
    uint32_t seat;
    int64_t hold; /* 0: of no hold; only a claim of `token` is given back */
    /* Above 0: the hold has the seat for this long, counted from the call, however late the server
     * executes it.  Otherwise the hold had the seat and has it no longer. */
    int64_t ttl_ms;
};
/* How many places an area has left. */
struct gate_count {
    int64_t event;
    int64_t seq;       /* of the event, at which `available` was true */
    int64_t available; /* places left */
    int64_t ttl_ms;    /* 0 or less: the count is deleted, whatever it says */
    uint32_t area;
};
/* Writes what a batch did; seats and counts come grouped by event.  A hold's seat replaces a claim,
 * an older hold or nothing, but never a newer hold, which has the larger key.  A seat that is free
 * again is deleted if this hold, an older one or a claim of `token` has it.  A count replaces one
 * of an earlier seq.  HF_DONE means that the gate has done all of it. */
enum hf_result gate_settle(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                           const struct gate_seat *seats, size_t n_seats,
                           const struct gate_count *counts, size_t n_counts,
                           struct hf_fault *fault);
/* As gate_settle, but HF_DONE means no more than that it was sent: the next call reads the
 * answers, and fails if the gate did not do it.  A Redis that has forgotten the scripts meanwhile
 * does none of it, and that is no failure; neither is a connection that was lost meanwhile.  Waits
 * while it is not known whether Redis has the scripts.  For what may come late or not at all:
 * entries of new holds, and counts. */
enum hf_result gate_settle_later(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                                 const struct gate_seat *seats, size_t n_seats,
                                 const struct gate_count *counts, size_t n_counts,
                                 struct hf_fault *fault);

/* ---- for the reconciler and for `holdfast verify` ---- */

/* Receives what gate_scan finds.  Claims are left out, since they end by themselves.  The functions
 * may not use the handle. */
struct gate_visitor {
    void *ctx;
    void (*seat)(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms);
    void (*count)(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available);
    /* A key of our form whose value cannot be read, or that never ends.  Keys of any other form
     * belong to other users of the database and are left out. */
    void (*strange)(void *ctx, const char *key, size_t len);
    /* Asked about every thousand keys; true ends the scan with HF_UNREACHABLE.  NULL: never. */
    bool (*stop)(void *ctx);
};
/* Visits all entries by SCAN, with one or two exchanges per thousand keys of the database.  An
 * entry that changes meanwhile may be visited, or not, or twice. */
enum hf_result gate_scan(struct gate *g, const struct gate_visitor *visitor,
                         struct hf_fault *fault);
/* Deletes keys that `strange` named.  A key that has become readable since is deleted too, which
 * costs nothing but speed. */
enum hf_result gate_drop(struct gate *g, const char *const *keys, const size_t *lens, size_t n,
                         struct hf_fault *fault);

#endif
