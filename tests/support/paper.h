/* The paper ledger: the worker's part around decide.c without a database and without an engine, for
 * the tests of the rules.  Its tables are those of the simulated ledger (sim/tables.h), with the
 * conditions that the ledger's statements put into each write; a batch that does not meet one fails
 * the test.  Include this file first, as fixtures.h. */
#ifndef HF_TESTS_SUPPORT_PAPER_H
#define HF_TESTS_SUPPORT_PAPER_H

#include "support/fixtures.h"

#include "sim/tables.h"
#include "view/waitlist.h"

struct fold;
struct judge;

struct paper_event {
    struct event *event; /* in the view */
    struct fold *fold;   /* its log, folded after every commit, */
    struct judge *judge; /* and judged */
};

struct paper {
    struct view *view;
    struct decision *decision;
    struct random random;
    int64_t now;
    size_t expire_max; /* due holds that a batch ends before its commands */
    struct sim_ledger ledger;
    struct ledger connection; /* has the locks of all events */
    VEC(struct paper_event) events;
    VEC(struct audit_row) audit; /* everything that was logged, with its actors, in that order */
};

void paper_init(struct paper *p, uint64_t seed);
void paper_close(struct paper *p);
/* Takes ownership of `def`; the event gets the next key. */
struct event *paper_event(struct paper *p, struct event_def *def);
/* NULL if there is no such row. */
struct hold_row *paper_hold(const struct paper *p, int64_t key);
struct booking_row *paper_booking(const struct paper *p, int64_t key); /* of a hold */
struct wait_row *paper_wait(const struct paper *p, int64_t key);
struct job_row *paper_job(const struct paper *p, int64_t job);
/* How many holds have a booking, and how many seats are sold. */
size_t paper_bookings(const struct paper *p);
size_t paper_sales(const struct paper *p);
/* Reads the event again from the rows, as the worker does with an event that is stale. */
void paper_reload(struct paper *p, struct event *e);

/* A batch, in the steps of the worker: paper_begin locks every event and ends due holds;
 * paper_decide reads the rows that a command names, decides it, and stores the answer of a success
 * under its key; paper_commit writes and publishes, paper_fail takes everything back. */
void paper_begin(struct paper *p);
/* DEFERRED: the command must wait for the next batch. */
enum decided { DEFERRED, DECIDED };
enum decided paper_decide(struct paper *p, struct ask *a);
void paper_commit(struct paper *p);
void paper_fail(struct paper *p);
/* Runs a batch of one command. */
enum verdict paper_run(struct paper *p, struct ask *a);

/* For between batches: the claims of sim/check.h, and that the view equals the ledger. */
void paper_check(struct paper *p);
/* Prints everything that the worker and other threads can see of the view. */
void paper_dump(const struct paper *p, struct buf *out);

#endif
