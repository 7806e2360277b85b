/* A journal in memory, for the journal's suite (tests/journal) and for simulations of a cell.  It
 * keeps every promise of cell/journal.h.  What it adds is control over time: a call is three steps,
 * and anything may happen between them, to this call and to those of other servers.
 *
 *   sim_journal_send     the request leaves the server.  Everything in it is copied, so the server
 *                        may forget the call, repeat it or end
 *   sim_sent_run         the journal does it, or refuses to, atomically.  At most once
 *   sim_sent_answer      the answer arrives at the server
 *
 * A simulator gets every fault by leaving steps out or by taking them late:
 *
 *   the answer is lost, and it was done     send, run, sim_sent_lose
 *   the answer is lost, and never done      send, sim_sent_lose
 *   the answer is lost, and done later      send, sim_sent_lose, other calls, run
 *   the journal cannot be reached           sim_journal_refuse, without send
 *   the server ends in the middle           send, sim_sent_free; or send, run, sim_sent_free
 *
 * A call that was lost before it ran may run at any later time, as one that waits in a network
 * does: if its epoch is not current by then, running it has no effect.
 *
 * Nothing here reads a clock or draws a random number.  One thread. */
#ifndef HF_TESTS_SIM_SIM_JOURNAL_H
#define HF_TESTS_SIM_SIM_JOURNAL_H

#include "cell/journal.h"

struct sim_journal; /* what is stored */
struct sim_sent;    /* a call on its way */

/* `name` is a short literal, for the URL "sim:NAME" of the driver below.  A journal that is not
 * `shared` can be opened by one handle at a time. */
struct sim_journal *sim_journal_new(const char *name, bool shared);
/* All handles must have been closed.  Frees the calls that are still on their way, too.  Accepts
 * NULL. */
void sim_journal_free(struct sim_journal *sim);

/* ---- the three steps, for a simulator ---- */

/* Copies the call; its results are not touched. */
struct sim_sent *sim_journal_send(struct sim_journal *sim, const struct journal_call *call);
/* Does what was sent.  Harmless if it was done already. */
void sim_sent_run(struct sim_sent *sent);
bool sim_sent_has_run(const struct sim_sent *sent);
/* Fills in the results of `call`, which may be another struct than the one that was sent.  The call
 * must have run. */
void sim_sent_answer(struct sim_sent *sent, struct journal_call *call);
/* The time for the answer is over: `call` is JOURNAL_UNKNOWN if it writes, and JOURNAL_UNREACHABLE
 * if it only reads.  The call may still run. */
void sim_sent_lose(struct sim_sent *sent, struct journal_call *call);
/* It will never run, if it has not.  Accepts NULL. */
void sim_sent_free(struct sim_sent *sent);
/* Answers a call that was not sent with JOURNAL_UNREACHABLE. */
void sim_journal_refuse(struct journal_call *call);

/* ---- looking at what is stored, for checks ---- */

/* Calls `stored` with every entry when it is stored, with the epoch that stored it; NULL: none.  An
 * index is reported once, also if it is trimmed later. */
void sim_journal_on_stored(struct sim_journal *sim,
                           void (*stored)(void *context, int64_t epoch, int64_t index,
                                          const void *data, size_t len),
                           void *context);
void sim_journal_head(const struct sim_journal *sim, struct journal_head *ret);
/* The bytes that all entries, chunks and reports take. */
size_t sim_journal_bytes(const struct sim_journal *sim);
/* "deposed", for messages; also of other journals. */
const char *journal_result_name(enum journal_result result);

/* ---- the same as a driver, whose calls take all three steps at once ---- */

/* Opens "sim:NAME" of a journal that sim_journal_new has made. */
extern const struct journal_driver journal_sim;

enum sim_fate {
    SIM_DONE,       /* as if nothing had been said */
    SIM_REFUSED,    /* JOURNAL_UNREACHABLE, and never done */
    SIM_LOST_DONE,  /* the answer is lost; it was done */
    SIM_LOST_NEVER, /* the answer is lost; it is never done */
    SIM_LOST_LATE   /* the answer is lost; it is done after `later` further calls of any handle */
};
/* The n-th call of this kind from now on (1: the next), on any handle, has this fate.  Replaces an
 * earlier order for the same kind of call. */
void sim_journal_order(struct sim_journal *sim, enum journal_op op, int n, enum sim_fate fate,
                       int later);
/* Runs the late calls that are still on their way, oldest first; returns how many there were. */
int sim_journal_run_late(struct sim_journal *sim);

#endif
