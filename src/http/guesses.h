/* Wrong access keys: counted, logged, and slowed down per address.
 *
 * An address has a bucket of wrong keys (QUOTA_WRONG_KEYS).  While the bucket is empty, a key from
 * that address is answered with 429 whether or not it is right, so that a guesser learns nothing
 * beyond the pace of the bucket.  Others may share the address (an office behind one router), and
 * must not be locked out with the guesser: a key that was used from the address while its bucket
 * was not empty is known there, and goes on working.
 *
 * What that costs: as long as somebody guesses, no program can begin to use its key from the same
 * address, and a guesser who shares an address with a client can try that client's key, and no
 * other, without being slowed down.  Against both a key of 16 random characters or more is enough;
 * shorter ones are refused where other machines can reach the server (access.h).
 *
 * Memory is fixed.  Known keys are in a table without locks, where a later entry may replace
 * another: the key is then known again after its next use.  Only the holder of a right key gets
 * anything into it. */
#ifndef HF_HTTP_GUESSES_H
#define HF_HTTP_GUESSES_H

#include <stdatomic.h>

#include "base/digest.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "http/address.h"

#define GUESSES_PER_MINUTE 30
#define GUESSES_BURST 200     /* a client that was given the wrong key is not locked out at once */
#define GUESSES_LOGGED_MAX 16 /* lines of the log in a minute */
#define GUESSES_KNOWN 8192

struct guesser {
    struct address address;
    int64_t logged_us; /* when its last line was written */
    uint64_t n_unlogged;
    bool used;
};

struct guesses {
    struct counter *total;
    struct lock lock; /* of what follows, but for `known` */
    struct guesser guessers[GUESSES_LOGGED_MAX];
    uint64_t n_others;                     /* of addresses that have no line of their own */
    _Atomic uint64_t known[GUESSES_KNOWN]; /* hashes of an address and a key */
};

void guesses_open(struct guesses *g, struct metrics *m);
void guesses_close(struct guesses *g);

/* Counts a wrong key.  Logs the address at most once in a minute, with the number of wrong keys
 * since its last line and of those that had no line at all. */
void guesses_note(struct guesses *g, const struct address *a, int64_t now_us);

/* Was this key used from this address?  `key` is its digest. */
bool guesses_know(const struct guesses *g, const struct address *a, const uint8_t key[DIGEST_SIZE]);
void guesses_remember(struct guesses *g, const struct address *a, const uint8_t key[DIGEST_SIZE]);

#endif
