/* The nouns of the lock service, and the commands that change its state.
 *
 *   request (node.h) -> command -> entry of the journal (entry.h) -> state (state.h) -> verdict
 *
 * A command says everything that its outcome depends on besides the state: no clock, no randomness
 * and no address of the server that applies it.  So every server of a cell that applies the same
 * entries in the same order has the same state.  Pure data; texts are borrowed. */
#ifndef HF_CELL_COMMAND_H
#define HF_CELL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/vec.h"

#define CELL_NAME_MAX 255  /* bytes of UTF-8 without control characters */
#define CELL_LEVELS_MAX 16 /* parts of a name, with `/` between them; no part is empty */
#define CELL_LABEL_MAX 128
#define CELL_AGENT_MAX 64
#define CELL_URL_MAX 255
#define CELL_VALUE_MAX 4096
#define CELL_OWNER_SIZE 16
#define CELL_SLOTS_MAX 1000000
#define CELL_PRIORITY_MAX 1000000 /* and at least -CELL_PRIORITY_MAX */
#define CELL_TTL_MIN_MS 1000
#define CELL_TTL_MAX_MS 86400000
#define CELL_DELAY_MAX_MS 600000
/* Limits of the state; a command beyond them is refused (CELL_TOO_MANY_...). */
#define CELL_SESSIONS_MAX 250000       /* in all */
#define CELL_ACQUISITIONS_MAX 1000000  /* held or waiting, in all */
#define CELL_NAMES_MAX 4000000         /* names, and those above them */
#define CELL_WAITERS_MAX 20000         /* for one name */
#define CELL_ENDED_MAX 65536           /* ended owners that a session remembers */
#define CELL_FREE_NAMES_MAX 10000      /* free names whose last fence is remembered */
#define CELL_OVERTAKEN_MAX 8           /* a waiter that was overtaken this often goes first */
#define CELL_FENCE_MAX (INT64_MAX / 4) /* of a command, so that later ones fit */

/* The order is that of `conflicts` in state_line.c.  A request for a name counts, for every
 * ancestor of the name, as an intention: a shared one as CELL_INTENTION_SHARED, an exclusive one as
 * CELL_INTENTION_EXCLUSIVE.
 *
 *            | exclusive | shared | intends exclusive | intends shared
 *   exclusive|    (1)    |   no   |        no         |      no
 *   shared   |           |  yes   |        no         |      yes
 *   intends X|           |        |        yes        |      yes
 *   intends S|           |        |                   |      yes
 *
 * (1) as many at once as the name has slots. */
enum cell_mode {
    CELL_EXCLUSIVE,
    CELL_SHARED,
    CELL_INTENTION_EXCLUSIVE,
    CELL_INTENTION_SHARED,
    CELL_MODES
};
extern const char *const cell_mode_names[CELL_MODES]; /* as the API has them: "exclusive", ... */

/* The identity of an acquisition within its session: a number of 1 to 32 hex digits.  "0a" and "a"
 * are different owners. */
struct cell_owner {
    uint8_t bytes[CELL_OWNER_SIZE]; /* the number, big-endian */
    uint8_t digits;                 /* how many it is written with; 0: no owner */
};
#define CELL_OWNER_TEXT_SIZE 33
void cell_owner_format(const struct cell_owner *owner, char ret[CELL_OWNER_TEXT_SIZE]);
/* Returns false if the text is not 1 to 32 hex digits. */
bool cell_owner_parse(const char *text, size_t len, struct cell_owner *ret);
bool cell_owner_equal(const struct cell_owner *a, const struct cell_owner *b);

struct cell_text {
    const char *data; /* NULL: none */
    size_t len;
};

/* Returns NULL if the name is one, or else what is wrong with it. */
const char *cell_name_check(const char *name, size_t len);

enum cell_kind {
    CELL_NOTHING = 0, /* no command has this number */
    /* The first command of a mastership.  Fences are at least `fence` from now on.  Uses epoch,
     * fence (the master's wall clock in microseconds) and url. */
    CELL_MASTER,
    /* The last command of a master that stops on purpose: whoever reads it may claim the journal at
     * once.  `ttls` says how long each session still had. */
    CELL_RESIGN,
    /* Opens a session.  Uses session, ttl_ms, account, limit, label. */
    CELL_OPEN,
    /* Its client ends a session: its locks are released, its places given up. */
    CELL_CLOSE,
    /* The master ends a session whose deadline has passed: as CELL_CLOSE, but its locks are lost,
     * and those with a delay_ms stay blocked until CELL_UNDELAY. */
    CELL_EXPIRE,
    /* Asks for a lock.  Uses session, owner, name, mode, slots, priority, delay_ms, agent, label
     * (none: that of the session), queue, cached, value.  A second command with the same session,
     * owner and name answers the same grant or place; it may change `cached`, and it brings back a
     * waiter that was passed over. */
    CELL_ACQUIRE,
    /* Gives up a lock or a place.  Uses session, owner, name; fence if it is not 0. */
    CELL_RELEASE,
    /* The master gives up the place of a waiter that has not asked for too long.  Does nothing if
     * the owner does not wait. */
    CELL_CANCEL,
    /* The master takes back a grant that nobody was there to receive.  The acquisition has its
     * place in the line again, but is passed over until it asks. */
    CELL_WITHDRAW,
    /* Sets the value of a name.  Uses session, owner, name, fence, value. */
    CELL_VALUE,
    /* The lock delay of the lost grant with this `fence` has ended.  Uses name and fence. */
    CELL_UNDELAY,
    /* Ends the grants of all holders of a name, for operators; waiters keep their places. */
    CELL_BREAK,
    /* Ended owners that were remembered before the last CELL_FORGET are forgotten. */
    CELL_FORGET,
    CELL_KINDS
};

struct cell_ttl {
    int64_t session;
    int64_t remaining_ms;
};

struct cell_command {
    enum cell_kind kind;
    struct id session; /* key and secret; the master's own commands have the key alone */
    struct cell_owner owner;
    struct cell_text name, label, agent, value, url;
    enum cell_mode mode;
    uint32_t slots;
    int32_t priority;
    uint32_t ttl_ms, delay_ms;
    bool queue;  /* wait in line if it cannot be granted now */
    bool cached; /* the client keeps a shared lock that it does not use, until it is wanted */
    /* Of a request that waits: all deadlocks through slots are refused, also those in which agents
     * wait for each other besides waiting for the one that asks.  Older versions stored requests
     * without this, which are judged as they were then. */
    bool finds_knots;
    bool by_master;  /* the command is the master's own: the secret is not compared */
    int64_t account; /* whose access key opened the session; 0: there are no keys */
    uint32_t limit;  /* how many sessions the account may have */
    int64_t fence;   /* see the kinds */
    int64_t epoch;
    const struct cell_ttl *ttls;
    size_t n_ttls;
};

/* Returns NULL if every field that the kind uses is within its limits, or else what is wrong.  Only
 * such commands may be stored; a server that receives others refuses them before. */
const char *cell_command_check(const struct cell_command *c);

/* How a command ended. */
enum cell_result {
    CELL_DONE = 0,          /* opened, granted, released, set */
    CELL_TAKEN,             /* not granted; `position` says whether it waits */
    CELL_NO_SESSION,        /* there is no such session, or not any more */
    CELL_LOST,              /* the owner neither holds nor awaits this lock, or not any more */
    CELL_DEADLOCK,          /* to wait would close a cycle, which `people` names */
    CELL_MODE_CONFLICT,     /* the owner has asked for this name in another mode */
    CELL_SLOTS_CONFLICT,    /* holders or waiters of the name asked for another number of slots */
    CELL_STALE_FENCE,       /* the owner holds the lock with another fence */
    CELL_TOO_MANY_SESSIONS, /* in all, or of the account */
    CELL_TOO_MANY_LOCKS,    /* holders and waiters, names or values, in all */
    CELL_TOO_MANY_WAITERS,  /* for the name */
    /* Of a node, not of the state: */
    CELL_NO_MASTER,   /* this server is not the master; `url` of the master if it is known */
    CELL_UNAVAILABLE, /* the journal does not answer; nothing was done */
    CELL_UNKNOWN,     /* the journal does not answer; the command may have been carried out */
    CELL_OVERLOADED,  /* the queue is full; nothing was done */
    CELL_STOPPING,    /* the server stops; nothing was done */
    CELL_NO_STANDBY,  /* there is no other server to hand the mastership over to */
    CELL_RESULTS
};

/* A lock and the label of a session that holds or awaits it. */
struct cell_person {
    char name[CELL_NAME_MAX + 1];
    char label[CELL_LABEL_MAX + 1]; /* empty: none */
};
#define CELL_PEOPLE_MAX 16

/* The answer to a command.  Zeroed before it is first used; cell_verdict_close frees it. */
struct cell_verdict {
    enum cell_result result;
    enum cell_mode mode;
    int64_t fence;     /* of CELL_ACQUIRE, if granted */
    uint32_t slot;     /* of CELL_ACQUIRE, if granted: from 0 to slots - 1 */
    uint32_t position; /* of CELL_ACQUIRE, if CELL_TAKEN: 1 is the next; 0: it has no place */
    uint32_t slots;    /* if CELL_SLOTS_CONFLICT: what the others asked for */
    bool repeated;     /* of CELL_ACQUIRE: the owner had the grant, or the place, already */
    /* CELL_TAKEN: the holders that are in the way.  CELL_DEADLOCK: the cycle, from the refused
     * request on: each awaits this name, held (or awaited earlier) by the next one.  At most
     * CELL_PEOPLE_MAX. */
    VEC(struct cell_person) people;
};
void cell_verdict_close(struct cell_verdict *v);

#endif
