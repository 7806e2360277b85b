/* The keeper looks after the ledger's files, on a thread and a connection of its own: it copies
 * SQLite's log into the main file, and measures how large everything is.
 *
 * How the log stays short.  SQLite begins its log anew when a transaction finds that all of it has
 * been copied, which never happens by itself while one batch follows another.  So the keeper copies
 * until less than LOG_REST_BYTES are left, and the worker copies those between two batches, which
 * takes it some milliseconds; its next batch begins the log anew.  By the length of the log:
 *
 *   LOG_COPY_BYTES    the keeper begins, a few pages at a time, since commits wait for the disk
 *   LOG_HURRY_BYTES   it no longer rests, and leaves up to LOG_REST_HURRY_BYTES to the worker
 *   LOG_BRAKE_BYTES   the worker waits for it after each batch, BRAKE_US for each MiB beyond that
 *
 * A program that reads the database in one long transaction (a backup, a shell) keeps the log from
 * beginning anew for that long.  Nothing waits for such a reader: the log grows until it is done.
 */
#ifndef HF_ENGINE_KEEPER_H
#define HF_ENGINE_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ledger/ledger.h"

#define LOG_COPY_BYTES (16 << 20)
#define LOG_HURRY_BYTES (24 << 20)
#define LOG_BRAKE_BYTES (128 << 20)
#define LOG_REST_BYTES (1 << 20)
#define LOG_REST_HURRY_BYTES (4 << 20)
#define BRAKE_US 100000

struct engine;
struct worker;

struct keeper {
    struct ledger *ledger;
    pthread_t thread;
    struct key_census census;
    _Atomic int64_t log_bytes; /* after the worker's last batch */
    atomic_bool hurry;         /* the log is long; see db_options */
    atomic_bool copied;        /* the rest of the log is the worker's to copy */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;  /* the keeper has something to do */
    pthread_cond_t done;  /* what the worker waits for at LOG_BRAKE_BYTES: `copied` or `pinned` */
    bool pinned;          /* a reader needs pages of the log, so that all of it cannot be copied */
    bool stopping;
};

void keeper_init(struct keeper *k);
void keeper_close(struct keeper *k); /* closes the ledger */
/* The thread's function; `arg` is the engine. */
void *keeper_main(void *arg);
void keeper_stop(struct keeper *k); /* then join the thread */

/* After each batch of the worker, on its thread. */
void keeper_after_batch(struct worker *w);

#endif
