/* Decides whether a history of lock operations is linearizable: whether every operation can be
 * given a moment between its invocation and its answer, so that one after the other they are what a
 * simple model of a lock would answer.  The search is that of Wing and Gong (1993): try each
 * operation that may be the next, and remember the situations that led nowhere.
 *
 * A history is that of one root name: its own lock and those below it.  An operation whose answer
 * was never received may have happened at any moment after its invocation, or not at all; but once
 * a release of its owner was answered, the owner has ended, and nothing is granted to it any more.
 * The model knows no lines: histories are of requests that do not wait.  Pure functions. */
#ifndef HF_SIM_LINEARIZE_H
#define HF_SIM_LINEARIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "cell/command.h"

#define LINEAR_NEVER INT64_MAX
#define LINEAR_OPS_MAX 512
#define LINEAR_HOLDERS_MAX 16

enum linear_kind { LINEAR_ACQUIRE, LINEAR_RELEASE, LINEAR_GET };
enum linear_outcome {
    LINEAR_GRANTED, /* ACQUIRE: the owner holds the lock, with `fence` */
    LINEAR_TAKEN,   /* ACQUIRE: somebody is in the way */
    LINEAR_DONE,    /* RELEASE: the owner held the lock, and does not any more */
    LINEAR_LOST,    /* ACQUIRE, RELEASE: the owner does not hold the lock (any more) */
    LINEAR_SEEN,    /* GET: `fences` are those of the holders of the name */
};

struct linear_op {
    enum linear_kind kind;
    int64_t invoked_us;
    int64_t answered_us; /* LINEAR_NEVER: the outcome is unknown */
    uint64_t owner;      /* of ACQUIRE and RELEASE: the identity of the acquisition, not 0 */
    const char *name;    /* borrowed */
    enum cell_mode mode; /* of ACQUIRE; the names of a history have one slot each */
    enum linear_outcome outcome;
    int64_t fence;
    int64_t fences[LINEAR_HOLDERS_MAX]; /* growing */
    size_t n_fences;
};
typedef VEC(struct linear_op) linear_history;

enum linear_result { LINEAR_YES, LINEAR_NO, LINEAR_TOO_LONG /* the search was given up */ };

/* Sorts the history by invocation.  `visits_max` bounds the search. */
enum linear_result linear_check(linear_history *history, size_t visits_max);

/* Do two modes on two names get in each other's way?  Names are compared part by part. */
bool linear_conflict(const char *name_a, enum cell_mode a, const char *name_b, enum cell_mode b);

/* Appends the operations as lines of text. */
void linear_print(const linear_history *history, struct buf *out);

#endif
