/* The inside of the state, shared by state*.c only.  A file calls those below it.
 *
 *   state.c           commands: which verdict, what changes
 *   state_snapshot.c  the state as bytes, and back
 *   state_check.c     the invariants
 *   state_graph.c     deadlocks
 *   state_look.c      what others ask about the state
 *   state_line.c      who goes before whom, what blocks whom, granting, ageing
 *   state_life.c      beginning, effects, end
 *   state_session.c   sessions, their accounts, agents, and the owners that have ended
 *   state_names.c     the tree of names, free names, slots, values
 *   state_index.c     ordered indexes
 *
 * Whatever an effect points to stays allocated until cell_state_clear_effects: what has ended is
 * unlinked at once and waits in `dead_*`.  Orders that decide anything (lines, holders, a session's
 * acquisitions, free names, ended owners) depend on the commands alone, so that a restored state
 * goes on as the original does.  Orders of children and of tables decide nothing. */
#ifndef HF_CELL_STATE_INTERNAL_H
#define HF_CELL_STATE_INTERNAL_H

#include "base/heap.h"
#include "base/table.h"
#include "cell/state.h"

#define STATE_ENDED_MAX (4 * CELL_ENDED_MAX) /* ended owners in all; the oldest are forgotten */
#define STATE_VALUES_MAX ((size_t)64 << 20)  /* bytes of all values, also of those not yet set */

/* ---- state_index.c ---- */

/* An ordered index: a treap.  A new item waits in a list until somebody looks, so items that come
 * and go in between cost O(1).  Its shape is not part of the state. */
struct order_node {
    struct order_node *left, *right; /* of the treap; of a list while it waits */
    uint64_t weight;                 /* 0: it waits */
};
struct order_key { /* the number decides, then the text */
    int64_t number;
    struct cell_text text;
};
struct cell_order {
    struct order_node *root;
    struct order_node *waiting;
    uint64_t n_weights;
    struct order_key (*key)(const struct order_node *node);
};
void order_add(struct cell_order *o, struct order_node *node);
void order_remove(struct cell_order *o, struct order_node *node);
/* The first node after `key`, or with it if `inclusive`; NULL: there is none. */
struct order_node *order_after(struct cell_order *o, struct order_key key, bool inclusive);
void order_each(struct cell_order *o, void (*each)(void *context, struct order_node *node),
                void *context);

/* ---- the nouns ---- */

struct session;

/* A thread of a client, or a set of locks that it wants together: a node of the waits-for graph. It
 * exists as long as it has acquisitions. */
struct agent {
    struct table_node node;
    struct session *session;
    size_t n_acquisitions;
    struct acquisition *waiting; /* those that wait and were not passed over */
    /* of the search that `search` numbers */
    uint64_t search;
    const struct acquisition *reached_by; /* the waiter that waits for this agent */
    struct agent *found_next;
    bool stuck; /* it cannot go on unless the agent that asks does */
    char text[];
};

struct acquisition {
    struct cell_acquisition pub;
    struct table_node node; /* by session, name and owner */
    struct agent *agent;    /* NULL: delayed, or ended */
    struct acquisition *agent_prev, *agent_next;
    struct acquisition *arrival_prev, *arrival_next; /* of the waiters of a name, by arrival */
    struct acquisition *dead_next;
    char *value; /* to be set with every grant of this acquisition; NULL: none */
    size_t value_len;
};

static inline struct acquisition *private_of(const struct cell_acquisition *a)
{
    return (struct acquisition *)a;
}

struct account {
    struct table_node node;
    int64_t account;
    size_t n_sessions;
};

/* An owner that must not come back while its session lives. */
struct ended {
    struct table_node node;
    struct session *session;
    struct ended *prev, *next; /* oldest first */
    struct ended *session_prev, *session_next;
    bool is_old; /* remembered before the last CELL_FORGET */
    struct cell_owner owner;
    uint16_t name_len;
    char name[];
};

struct session {
    struct cell_session pub;
    struct table_node node;
    struct order_node order;
    struct heap_node ttl;
    struct account *account;
    struct ended *ended_first, *ended_last;
    size_t n_ended;
    struct session *dead_next;
    char label[];
};

enum cell_intent { INTENT_EXCLUSIVE, INTENT_SHARED, INTENTS };

struct line {
    struct cell_acquisition *first, *last;
    size_t n;
};

struct slot_map {
    uint64_t *words; /* one bit per slot: it is held */
    size_t n_words;
    size_t first; /* no word before this one has a free slot */
};

struct cell_name {
    struct table_node node;
    struct order_node order;
    /* A name is live while it has an acquisition or a live child; only then it has a parent. */
    bool is_live, is_free;
    uint16_t len;
    uint32_t slots; /* of its exclusive acquisitions */
    struct cell_name *parent;
    struct cell_name *children, *sibling_prev, *sibling_next;
    /* Those children that have waiters, or have some below. */
    struct cell_name *waiting_children, *waiting_prev, *waiting_next;
    struct cell_name *free_prev, *free_next; /* of the free names, oldest first; of the dead ones */
    struct line holders;                     /* by fence */
    struct line lines[CELL_MODES];           /* of waiters that were not passed over, by rank */
    struct line passed_over;                 /* by arrival */
    struct acquisition *arrival_first, *arrival_last;   /* those of `lines` */
    size_t n_waiting;                                   /* those of `lines` */
    size_t n_acquisitions, n_exclusive;                 /* held, delayed and awaited */
    size_t held[CELL_MODES];                            /* also delayed */
    size_t below_held[INTENTS], below_waiting[INTENTS]; /* of all proper descendants */
    struct slot_map slots_held;
    int64_t last_fence;
    char *value;
    size_t value_len;
    int64_t value_fence; /* the value ends with this grant; 0: there is no value */
    /* of the pass and of the search that these number */
    uint64_t pass, pass_below, search;
    const struct cell_acquisition *searched[CELL_MODES];
    char text[];
};

/* A waiter that may be grantable, and its rank when it became a candidate. */
struct candidate {
    struct cell_acquisition *a;
    int64_t rank, arrival;
};

struct cell_state {
    int64_t epoch, fence;
    int64_t arrival; /* the last that was given */
    bool is_resigned;
    char master[CELL_URL_MAX + 1];
    VEC(struct cell_ttl) ttls; /* of the last CELL_RESIGN, by session */

    struct table names, sessions, acquisitions, agents, accounts, ended;
    struct cell_order names_by_text, sessions_by_key;
    struct heap sessions_by_ttl;
    struct cell_name *free_first, *free_last;
    struct ended *ended_first, *ended_last;
    size_t n_free, n_used_names, n_held, n_waiting, n_delayed, n_cached, value_bytes;

    /* of the current command */
    bool wants_verdict;
    VEC(struct cell_effect) effects;
    VEC(struct cell_name *) touched;  /* names that may have become free, or grantable */
    VEC(struct candidate) candidates; /* a heap */
    uint64_t n_passes, n_searches;

    struct acquisition *dead_acquisitions;
    struct session *dead_sessions;
    struct cell_name *dead_names;
};

static inline size_t state_n_acquisitions(const struct cell_state *s)
{
    return s->n_held + s->n_waiting + s->n_delayed;
}

/* ---- state_life.c ---- */

void state_effect(struct cell_state *s, enum cell_effect_kind kind, struct cell_acquisition *a);

/* ---- state_session.c ---- */

struct session *session_find(const struct cell_state *s, int64_t key);
struct session *session_add(struct cell_state *s, const struct id *id, uint32_t ttl_ms,
                            int64_t account, struct cell_text label);
/* It has no acquisitions any more. */
void session_remove(struct cell_state *s, struct session *session);
size_t session_n_of_account(const struct cell_state *s, int64_t account);

/* What identifies an acquisition, also one that has ended. */
struct owner_key {
    struct session *session;
    struct cell_text name;
    const struct cell_owner *owner;
    uint64_t hash;
};
/* `session` may be NULL; such a key must not be used. */
struct owner_key owner_key(struct session *session, struct cell_text name,
                           const struct cell_owner *owner);

/* A new acquisition of a session, in no list but the session's. */
struct acquisition *acquisition_add(struct cell_state *s, const struct owner_key *key,
                                    struct cell_name *name, struct cell_text agent);
/* A delayed one, which has no session. */
struct acquisition *acquisition_add_delayed(struct cell_state *s, struct cell_name *name,
                                            const struct cell_owner *owner);
/* The acquisition leaves its session and its agent. */
void acquisition_detach(struct cell_state *s, struct acquisition *a);
/* The acquisition, which is in no list, does not count any more.  It is freed with the effects. */
void acquisition_bury(struct cell_state *s, struct acquisition *a);
struct acquisition *acquisition_find(const struct cell_state *s, const struct owner_key *key);
void acquisition_free(struct acquisition *a);
void acquisition_set_label(struct acquisition *a, struct cell_text label);
void acquisition_set_value(struct cell_state *s, struct acquisition *a, struct cell_text value);

struct ended *ended_find(const struct cell_state *s, const struct owner_key *key);
struct ended *ended_add(struct cell_state *s, const struct owner_key *key);
/* What CELL_FORGET does. */
void ended_forget(struct cell_state *s);

/* ---- state_names.c ---- */

struct cell_name *name_find(const struct cell_state *s, const char *text, size_t len);
struct cell_name *name_add(struct cell_state *s, const char *text, size_t len); /* not live */
/* The live name; it is made, with its ancestors, if need be. */
struct cell_name *name_use(struct cell_state *s, const char *text, size_t len);
/* Forgets or frees the name, and its ancestors, if nothing is left of them. */
void name_settle(struct cell_state *s, struct cell_name *n);
/* Settles every name of `touched`, and empties `touched`. */
void names_settle(struct cell_state *s);
/* A name without acquisitions whose fence is remembered becomes the newest free one. */
void name_make_free(struct cell_state *s, struct cell_name *n);
void name_free(struct cell_name *n);

void name_set_value(struct cell_state *s, struct cell_name *n, struct cell_text value,
                    int64_t fence);
/* Counts a holder, or a waiter that was not passed over, in the name and its ancestors. */
void name_count_holder(struct cell_name *n, enum cell_mode mode, int change);
void name_count_waiter(struct cell_name *n, enum cell_mode mode, int change);

uint32_t slots_take(struct slot_map *m); /* the lowest free one */
/* Returns false if it is taken. */
bool slots_take_this(struct slot_map *m, uint32_t slot);
void slots_give(struct slot_map *m, uint32_t slot);

/* ---- state_line.c ---- */

extern const bool conflicts[CELL_MODES][CELL_MODES];

static inline enum cell_intent intent_of(enum cell_mode mode)
{
    return mode == CELL_EXCLUSIVE || mode == CELL_INTENTION_EXCLUSIVE ? INTENT_EXCLUSIVE
                                                                      : INTENT_SHARED;
}
static inline enum cell_mode intention_mode(enum cell_intent intent)
{
    return intent == INTENT_EXCLUSIVE ? CELL_INTENTION_EXCLUSIVE : CELL_INTENTION_SHARED;
}

bool line_goes_before(const struct cell_acquisition *a, const struct cell_acquisition *b);
bool line_is_blocked(const struct cell_acquisition *a);
void line_add(struct acquisition *a);
void line_remove(struct acquisition *a);
void holders_add(struct acquisition *a);
void holders_remove(struct acquisition *a);

/* Calls `each` with every holder, and if `waiters` every earlier waiter, that blocks `a`, until it
 * returns true; returns whether it did. */
typedef bool blocker_fn(void *context, struct cell_acquisition *blocker);
bool line_each_blocker(const struct cell_acquisition *a, bool waiters, blocker_fn *each,
                       void *context);
bool line_is_wanted(const struct cell_acquisition *holder);
/* Tells the caching holders that are in the way of a waiter. */
void line_want(struct cell_state *s, const struct cell_acquisition *a);

/* Grants an acquisition that is in no list. */
void grant(struct cell_state *s, struct acquisition *a);
/* Grants whatever can be granted since something ended at the names of `touched`.  Cost: the
 * waiters at the head of each line of these names, their ancestors and their descendants. */
void grant_touched(struct cell_state *s);

/* ---- state_graph.c ---- */

/* Does `a`, which has its place in the line, close a cycle?  Then it is described in `ret` (may be
 * NULL).  `finds_knots`: see struct cell_command. */
bool graph_closes_cycle(struct cell_state *s, const struct acquisition *a, bool finds_knots,
                        struct cell_verdict *ret);

/* ---- state_check.c ---- */

/* Returns NULL if the invariants hold, or else which does not. */
const char *state_defect(const struct cell_state *s);

#endif
