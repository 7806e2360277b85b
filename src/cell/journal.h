/* The journal that the servers of a cell share: an append-only log in an engine that already knows
 * how to store things safely.  It is the only thing that they share, and the only authority.
 *
 *   epoch     the number of a mastership; it only grows.  `claim` raises it, and stores with it the
 *             claim id, 128 random bits of the server that claims
 *   entry     bytes at an index, from 1 on without gaps.  `append` stores an entry if epoch and
 *             claim are still current and the index is free, as one atomic, durable step
 *   snapshot  the state after an index, in chunks.  The chunks are stored first, then the pointer
 *             to them; the last two snapshots are kept
 *   trim      deletes entries that the older of the two snapshots has made superfluous
 *   report    every server stores its URL and how far it is, for people who want to see the cell
 *
 * Safety needs no clock: once a claim is stored, no append, snapshot, pointer or trim of an earlier
 * epoch can take effect any more, also one that was sent before and arrives late.  (A chunk that
 * arrives late has no pointer.)  A stopped master holds nothing that stops another from claiming.
 *
 * There is no heartbeat: a master that has nothing to say appends an empty entry (entry.h).
 *
 * Calls are synchronous and return within timeout_ms, or a little later.  A handle belongs to one
 * thread.  Drivers do not repeat a write whose answer was lost; they reconnect by themselves. */
#ifndef HF_CELL_JOURNAL_H
#define HF_CELL_JOURNAL_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/vec.h"

#define JOURNAL_CLAIM_SIZE 16
#define JOURNAL_ID_SIZE 16
#define JOURNAL_URL_MAX 255
#define JOURNAL_CHUNK_MAX ((size_t)256 * 1024) /* no entry and no chunk is longer */
#define JOURNAL_PAGE_MAX ((size_t)1024 * 1024) /* `read` stops after this many bytes */
#define JOURNAL_SERVERS_MAX 64

enum journal_result {
    JOURNAL_DONE,    /* done, and durable */
    JOURNAL_FOUND,   /* append, claim: the same entry or claim was stored already, by an attempt
                        whose answer was lost */
    JOURNAL_DEPOSED, /* epoch or claim is not current, or the index is not free: nothing was done,
                        and nothing of this mastership will ever be done again */
    JOURNAL_TRIMMED, /* read: the entries asked for are gone; load the snapshot */
    JOURNAL_NONE,    /* load: there is no snapshot */
    JOURNAL_UNKNOWN, /* the answer was lost: it may have been done, or be done later */
    JOURNAL_UNREACHABLE, /* nothing was done, and nothing will be */
    JOURNAL_DAMAGED,     /* what is stored cannot be right; err says what */
};
/* The journal did not answer, or gave an answer that cannot be right. */
static inline bool journal_is_failure(enum journal_result result)
{
    return result == JOURNAL_UNKNOWN || result == JOURNAL_UNREACHABLE || result == JOURNAL_DAMAGED;
}

/* Who is the master, and how far the journal goes. */
struct journal_head {
    int64_t epoch; /* 0: never claimed */
    uint8_t claim[JOURNAL_CLAIM_SIZE];
    char url[JOURNAL_URL_MAX + 1]; /* of the server that claimed */
    int64_t last;                  /* the index of the last entry; 0: none */
    int64_t snapshot;              /* the index of the newest snapshot; 0: none */
};

struct journal_entry {
    int64_t index;
    size_t at, len; /* in journal_page.bytes */
};

/* What `read` found: the head, and entries from after + 1 on without gaps. */
struct journal_page {
    struct journal_head head;
    VEC(struct journal_entry) entries;
    struct buf bytes;
};
static inline void journal_page_clear(struct journal_page *page)
{
    page->head = (struct journal_head){0};
    vec_clear(&page->entries);
    page->bytes.len = 0;
}
static inline void journal_page_close(struct journal_page *page)
{
    vec_close(&page->entries);
    buf_close(&page->bytes);
}

struct journal_server {
    char url[JOURNAL_URL_MAX + 1];
    int64_t index; /* how far it has applied the journal */
    int64_t beat;  /* a number that differs from report to report */
};

struct journal_options {
    const struct clock *clock;
    int64_t timeout_ms; /* of a call; 0: 2000 */
    bool may_lose; /* --journal-may-lose: an engine that may lose what it acknowledged will do */
};

/* The mastership in whose name something is written. */
struct journal_mandate {
    int64_t epoch;
    uint8_t claim[JOURNAL_CLAIM_SIZE];
};

struct journal;

/* What a driver implements.  Results other than those named mean failures; `err` is filled for
 * JOURNAL_UNKNOWN, JOURNAL_UNREACHABLE and JOURNAL_DAMAGED. */
struct journal_driver {
    const char *name;
    const char *const *schemes; /* the beginnings of its URLs, "sqlite:", ended by NULL */
    bool
        shared; /* several servers may use it.  If not, a second open fails while the first lives */
    /* Opens the journal and makes its tables.  A wrong URL is HF_INVALID_REQUEST. */
    HF_MUST_USE enum hf_status (*open)(const char *url, const struct journal_options *options,
                                       struct journal **ret, struct hf_err *err);
    void (*close)(struct journal *j);
    /* Reads the head and entries after an index.  JOURNAL_DONE or JOURNAL_TRIMMED (the head is
     * filled).  At least one entry is returned if there is one, and at most JOURNAL_PAGE_MAX bytes
     * besides the first.  Head and entries are of one moment, or the head is older. */
    enum journal_result (*read)(struct journal *j, int64_t after, struct journal_page *ret,
                                struct hf_err *err);
    /* Raises the epoch to m->epoch, if it is m->epoch - 1 now, and stores the claim id and the URL.
     * JOURNAL_DONE, JOURNAL_FOUND, JOURNAL_DEPOSED. */
    enum journal_result (*claim)(struct journal *j, const struct journal_mandate *m,
                                 const char *url, struct hf_err *err);
    /* Stores an entry.  `id` tells entries apart that were written for the same index.
     * JOURNAL_DONE, JOURNAL_FOUND (the index has an entry with this id), JOURNAL_DEPOSED. */
    enum journal_result (*append)(struct journal *j, const struct journal_mandate *m, int64_t index,
                                  const uint8_t id[JOURNAL_ID_SIZE], const void *data, size_t len,
                                  struct hf_err *err);
    /* Stores chunk `no`, from 0 on, of the snapshot after `index`; an equal chunk may be stored
     * again.  JOURNAL_DONE, JOURNAL_DEPOSED. */
    enum journal_result (*put_chunk)(struct journal *j, const struct journal_mandate *m,
                                     int64_t index, int64_t no, const void *data, size_t len,
                                     struct hf_err *err);
    /* Makes the snapshot of n_chunks chunks the newest, forgets all but it and the one before, and
     * deletes the chunks that belong to none of them.  JOURNAL_DONE, JOURNAL_DEPOSED. */
    enum journal_result (*point)(struct journal *j, const struct journal_mandate *m, int64_t index,
                                 int64_t n_chunks, struct hf_err *err);
    /* Appends the newest snapshot to `ret`.  JOURNAL_DONE, JOURNAL_NONE. */
    enum journal_result (*load)(struct journal *j, int64_t *ret_index, struct buf *ret,
                                struct hf_err *err);
    /* Deletes the entries up to the older of the two snapshots, a bounded number per call;
     * *ret_more: call it again.  JOURNAL_DONE, JOURNAL_DEPOSED. */
    enum journal_result (*trim)(struct journal *j, const struct journal_mandate *m, bool *ret_more,
                                struct hf_err *err);
    /* Stores how far this server is, deletes the report of the server `gone` (NULL: none), and
     * lists all reports.  JOURNAL_DONE. */
    enum journal_result (*report)(struct journal *j, const struct journal_server *self,
                                  const char *gone, struct journal_server *ret, size_t max,
                                  size_t *ret_n, struct hf_err *err);
    /* Appends what an operator should know about the engine's settings, one line each.  NULL: there
     * is nothing to say. */
    HF_MUST_USE enum hf_status (*warnings)(struct journal *j, struct buf *ret_lines,
                                           struct hf_err *err);
    /* How often the engine has synced to disk for this handle.  Costs no exchange.  NULL: not
     * known. */
    int64_t (*syncs)(const struct journal *j);
};

struct journal {
    const struct journal_driver *driver;
};

extern const struct journal_driver journal_sqlite, journal_postgres, journal_etcd;

/* ---- journal.c ---- */

/* The driver whose scheme the URL begins with; NULL: none. */
const struct journal_driver *journal_driver_for(const char *url);

/* One call as data, so that a node can say what it wants done and be told how it went (node.h),
 * while a thread or a simulator does it. */
enum journal_op {
    JOURNAL_READ,
    JOURNAL_CLAIM,
    JOURNAL_APPEND,
    JOURNAL_PUT_CHUNK,
    JOURNAL_POINT,
    JOURNAL_LOAD,
    JOURNAL_TRIM,
    JOURNAL_REPORT
};
struct journal_call {
    enum journal_op op;
    struct journal_mandate mandate;
    int64_t index; /* READ: after this one */
    int64_t no, n_chunks;
    uint8_t id[JOURNAL_ID_SIZE];
    const void *data;
    size_t len;
    const char *url;  /* CLAIM */
    const char *gone; /* REPORT */
    struct journal_server self;
    /* out */
    enum journal_result result;
    struct hf_err err;
    struct journal_page page; /* READ */
    struct buf snapshot;      /* LOAD; emptied first */
    int64_t snapshot_index;
    bool more; /* TRIM */
    struct journal_server servers[JOURNAL_SERVERS_MAX];
    size_t n_servers;
};
void journal_run(struct journal *j, struct journal_call *call);
void journal_call_close(struct journal_call *call);

#endif
