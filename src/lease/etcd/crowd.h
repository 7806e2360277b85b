/* What the handles of one open know together about many waiters, so that a thousand of them in one
 * process do not ask etcd a thousand times: where each of them stands, when its lease was last kept
 * alive, and the lines that were read lately.  All of it may be forgotten at any time; it only
 * saves exchanges.  Every function may be called by any thread. */
#ifndef HF_LEASE_ETCD_CROWD_H
#define HF_LEASE_ETCD_CROWD_H

#include <pthread.h>

#include "lease/etcd/wire.h"

/* Lines with more requests than this are a crowd; in others every request asks etcd. */
#define CROWD_MIN 64
/* A request that waits. */
struct crowd_place {
    int64_t lease;  /* 0: none */
    int64_t create; /* the revision that created its key */
    int64_t
        refreshed_us;  /* boot time; before the lease was last granted or kept alive; 0: unknown */
    int64_t ttl_ms;    /* of the lease, if it was refreshed */
    int64_t term;      /* of the leader that refreshed it; 0: a write did */
    int64_t asked_us;  /* when a thread last sent such a request; 0: none did */
    int64_t active_us; /* when it was last asked for or waited on */
    size_t position;
    size_t count; /* how long the line was */
};

struct crowd;
struct crowd *crowd_new(void);
void crowd_free(struct crowd *crowd);

/* Returns false if the request is not known. */
bool crowd_find(struct crowd *crowd, int64_t lease, struct crowd_place *ret);
/* Remembers where a request stands. */
void crowd_note(struct crowd *crowd, int64_t lease, int64_t create, size_t position, size_t count);
void crowd_forget(struct crowd *crowd, int64_t lease);
/* The lease was granted (`term` 0), or kept alive by the leader of `term`, by a request that was
 * sent at `now_us`; ttl_ms 0: it is gone. */
void crowd_refreshed(struct crowd *crowd, int64_t lease, int64_t now_us, int64_t ttl_ms,
                     int64_t term);
/* Lists `lease`, and up to `max` - 1 others that are asked for or waited on, and for which no
 * request was sent since `before_us`; notes that one is sent at `now_us`.  Returns their number. */
size_t crowd_due(struct crowd *crowd, int64_t lease, int64_t now_us, int64_t before_us, size_t max,
                 int64_t *ret_leases);
/* How long ago a request was last sent that keeps the lease alive, or was answered; INT64_MAX: that
 * is not known.  Notes that the place is asked for or waited on. */
int64_t crowd_refreshed_ago_us(struct crowd *crowd, int64_t lease, int64_t now_us);

/* Lines are read in two ways: their LINE_MAX oldest entries often, and all of them rarely. */
enum crowd_part { CROWD_HEAD, CROWD_WHOLE };
/* What the line of a name, as a thread of the process has read it lately, says about a waiter. */
enum crowd_answer {
    CROWD_WAITS, /* it has to wait, at *ret_position */
    CROWD_ASK,   /* it may be its turn, others near it may not claim theirs, or it is not in line */
    CROWD_STALE, /* the caller reads *ret_part of the line and calls crowd_line_note */
};
enum crowd_answer crowd_judge(struct crowd *crowd, const struct subject *s,
                              const struct crowd_place *place, int64_t now_us,
                              enum crowd_part *ret_part, size_t *ret_position);
/* Takes what is in `line`, which was asked for at `now_us`, and leaves it empty. */
void crowd_line_note(struct crowd *crowd, const struct subject *s, enum crowd_part part,
                     struct etcd_line *line, int64_t now_us);
/* Was there a crowd lately? */
bool crowd_is_there(struct crowd *crowd, const struct subject *s, int64_t now_us);

#endif
