/* The inside of a node, shared by node*.c only.  A file calls those below it; node.h has the roles.
 *
 *   node.c             what is asked of a node: requests, the next call, by its role
 *   node_follow.c      what a standby does
 *   node_lead.c        what a master does
 *   node_snapshot.c    the snapshots that a master stores
 *   node_report.c      which servers the cell has
 *   node_apply.c       what an entry means for requests and deadlines
 *   node_requests.c    answers, and giving up
 *   node_deadlines.c   what ends by itself */
#ifndef HF_CELL_NODE_INTERNAL_H
#define HF_CELL_NODE_INTERNAL_H

#include "base/heap.h"
#include "cell/node.h"

#define POLL_US 40000            /* how often a standby reads */
#define LINGER_US 20000          /* keep-alives alone wait this long for others */
#define RETRY_MIN_US 10000       /* after a failed call */
#define RETRY_MAX_US 200000      /* after several */
#define REPORT_US 1000000        /* how often a server reports how far it is */
#define REPORT_LATELY_US 2500000 /* a server whose report is older is not handed over to */
#define REPORT_FRESH_US 5000000  /* a server whose report is older is not listed */
#define REPORT_GONE_US 60000000  /* a report that has not changed for this long is deleted */
#define WANTED_MAX 256           /* names that one keep-alive is told of */
#define FORGET_US 60000000       /* how often ended owners are forgotten */
#define SNAPSHOT_ENTRIES 8192
#define SNAPSHOT_BYTES ((size_t)32 << 20)
#define NEVER_US INT64_MAX

/* A list of requests, oldest first. */
struct requests_list {
    struct cell_request *head, *tail;
    size_t n;
};

/* Something that ends by itself, unless something else happens before. */
enum deadline_kind {
    DEADLINE_SESSION, /* the session expires */
    DEADLINE_PLACE,   /* a waiter that nobody asks for loses its place */
    DEADLINE_GRANT,   /* a grant that nobody received is withdrawn */
    DEADLINE_DELAY,   /* a lock delay ends */
    DEADLINE_REQUEST  /* a request has waited long enough for its grant */
};
struct deadline {
    struct heap_node node; /* its key is a time of clock_boot_us */
    enum deadline_kind kind;
    struct cell_session *session;         /* of DEADLINE_SESSION */
    struct cell_acquisition *acquisition; /* of all others */
    int64_t claim_us;                     /* how long an unreceived grant is kept */
};

/* One server as its reports show it. */
struct known_server {
    struct journal_server report;
    int64_t changed_us; /* when its report last differed from the one before */
};

/* The state, and how far the journal was applied to it. */
struct replica {
    struct cell_state *state;
    int64_t index;                   /* of the last entry applied */
    uint8_t chain[CELL_DIGEST_SIZE]; /* up to there */
    bool is_loaded;                  /* a snapshot was looked for */
};

/* The journal: the call under way, and how calls went. */
struct node_journal {
    struct journal_call call;
    bool is_calling;
    int64_t sent_us;     /* when `call` was handed out */
    int64_t retry_us;    /* no call before this time, after a failure */
    unsigned n_failures; /* since the last answer */
    bool answers;
    char why[256];            /* if it does not */
    struct journal_head head; /* as last read */
};

/* A standby: the silence of the master, and the claim that ends it. */
struct node_follow {
    int64_t changed_us;  /* when the journal was last seen to change, or could not be read */
    int64_t read_us;     /* when the next read is due */
    int64_t no_claim_us; /* no claim before this time */
    bool claim_in_doubt; /* an attempt to store the claim had no answer */
    bool checks_tail;    /* the last entry is read again, to be compared */
};

/* The servers of the cell. */
struct node_reports {
    int64_t due_us; /* the next report of this server */
    int64_t beat;
    VEC(struct known_server) known;
    char gone[JOURNAL_URL_MAX + 1]; /* the server whose report is being deleted */
    struct journal_server fresh[JOURNAL_SERVERS_MAX];
    size_t n_fresh;
};

/* The entry under way, which stays as it is until its fate is known (N3). */
struct node_entry {
    struct buf bytes; /* empty: there is none */
    uint8_t id[CELL_ENTRY_ID_SIZE];
    VEC(struct cell_request *) authors; /* of its commands, in order; NULL: the master */
    struct requests_list proofs;        /* keep-alives and looks that this append proves (N2) */
    bool in_doubt;                      /* an attempt to store it had no answer */
    bool resigns;                       /* it ends the mastership */
    int64_t begun_us;                   /* when it was first sent */
};

/* The requests that are in no entry. */
struct node_requests {
    struct requests_list queue;   /* to be gathered */
    size_t n_keepalives;          /* of these, which are never refused (N5) */
    struct requests_list found;   /* decided by a found entry: wait for one more append (N3) */
    struct requests_list waiting; /* for a grant; each has a deadline */
    struct requests_list transfers;
};

/* What a master does of itself. */
struct node_lead {
    int64_t appended_us;  /* when the last append that was acknowledged was sent */
    int64_t heartbeat_us; /* when the next heartbeat is due */
    int64_t forget_us;    /* when the next CELL_FORGET is due */
    bool has_ended;       /* since the last CELL_FORGET an acquisition has ended */
};

/* A snapshot that is being stored, in steps between appends. */
struct node_snapshot {
    enum { SNAPSHOT_IDLE, SNAPSHOT_CHUNKS, SNAPSHOT_POINT, SNAPSHOT_TRIM } step;
    struct buf bytes;
    int64_t index;      /* of the one that is being stored, or was last */
    int64_t next_chunk; /* to be stored */
    int64_t try_us;     /* not before this time */
    size_t entry_bytes; /* of entries since the last one */
    bool was_last;      /* the last call was one of the snapshot's */
};

struct node {
    struct node_config config;
    enum node_role role;
    bool retires;
    int64_t seen_us; /* when the node was last run (N4) */
    struct replica replica;
    struct node_journal journal;
    struct journal_mandate mandate; /* of the claim that was last made */
    struct node_follow follow;
    struct node_reports reports;
    /* of a master */
    struct node_entry entry;
    struct node_requests requests;
    struct heap deadlines; /* N4 */
    struct node_lead lead;
    struct node_snapshot snapshot;
    struct node_counts counts;
};

static inline int64_t node_now_us(const struct node *n) { return clock_boot_us(n->config.clock); }
static inline bool node_leads(const struct node *n)
{
    return n->role == NODE_LEADING || n->role == NODE_RESIGNING;
}

/* ---- node_follow.c ---- */

void follow_done_read(struct node *n, int64_t now_us);
void follow_done_claim(struct node *n, int64_t now_us);
void follow_done_load(struct node *n, int64_t now_us);

/* ---- node_lead.c ---- */

/* The node's claim is stored and everything is read: the first entry is to be appended. */
void lead_prepare_first(struct node *n);
/* The call that a master wants made; false: none now. */
bool lead_next(struct node *n, int64_t now_us);
void lead_done(struct node *n, int64_t now_us);
int64_t lead_wait_until_us(const struct node *n);

/* ---- node_snapshot.c ---- */

/* Returns true if a step of a snapshot is due, and fills in the call. */
bool snapshot_next(struct node *n, int64_t now_us);
void snapshot_done(struct node *n, int64_t now_us);

/* ---- node_report.c ---- */

/* Returns true if a report is due, and fills in the call. */
bool report_next(struct node *n, int64_t now_us);
void report_done(struct node *n, int64_t now_us);
/* There is another server to take over: one that has reported lately. */
bool report_has_successor(const struct node *n, int64_t now_us);

/* ---- node_apply.c ---- */

/* Applies the commands of an entry.  `authors` has their requests, or is NULL. */
HF_MUST_USE bool node_apply(struct node *n, const void *data, size_t len,
                            struct cell_request *const *authors, size_t n_authors,
                            struct hf_err *err);

/* ---- node_requests.c ---- */

void requests_push(struct requests_list *l, struct cell_request *r);
void requests_remove(struct requests_list *l, struct cell_request *r);
struct cell_request *requests_pop(struct requests_list *l); /* NULL: it is empty */

/* Gives a request back with this result. */
void node_answer(struct node *n, struct cell_request *r, enum cell_result result);
/* Gives it back with the verdict that it has. */
void node_give_back(struct cell_request *r);
/* The URL of the master as far as this node knows it; "": none, or itself. */
const char *node_master_url(const struct node *n);
/* The answer to a grant goes out, after it waited for a proof. */
void requests_note_answered(struct node *n, const struct cell_request *r, int64_t now_us);
/* The request that waits until this deadline has waited long enough: it learns where it stands, and
 * its place is kept for a while. */
void requests_end_wait(struct node *n, struct deadline *d, int64_t now_us);
/* Gives back what has waited too long for a mastership, or for an append.  O(waiting) while an
 * entry is under way. */
void requests_give_up(struct node *n, int64_t now_us);
void node_change_role(struct node *n, enum node_role role);
/* The node leads no more: every request is given back. */
void node_step_down(struct node *n, enum cell_result of_entry);

/* ---- node_deadlines.c ---- */

void deadline_session(struct node *n, struct cell_session *s, int64_t at_us);
void deadline_acquisition(struct node *n, struct cell_acquisition *a, enum deadline_kind kind,
                          int64_t at_us);
/* The request waits for the acquisition until r->until_us. */
void deadline_request(struct node *n, struct cell_acquisition *a, const struct cell_request *r);
/* Nobody is there to receive the grant: it is kept for as long as its last request said. */
void deadline_unreceived(struct node *n, struct cell_acquisition *a, int64_t now_us);
void deadline_drop(struct node *n, void **slot); /* accepts a slot that is NULL */
/* Sets the deadlines of everything in the state, for a new master. */
void deadlines_begin(struct node *n, int64_t now_us);
/* Every session has its full TTL again, and every place is kept for a while. */
void deadlines_renew(struct node *n, int64_t now_us);
void deadlines_clear(struct node *n);
int64_t deadlines_first_us(const struct node *n);

#endif
