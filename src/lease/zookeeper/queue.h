/* The nodes of one lock, and whose turn it is.
 *
 *   ROOT/NAME                          a container; its data is the fence of the last exclusive
 *                                      lease that was given back
 *   ROOT/NAME/@l                       while an exclusive lease exists, an ephemeral node of its
 *                                      owner; otherwise none, or a container of shared leases
 *   ROOT/NAME/@h-OWNER-e               an exclusive lease
 *   ROOT/NAME/@l/@h-OWNER-s            a shared lease
 *   ROOT/NAME/@w-OWNER-MODE-SEQUENCE   a place in the queue; MODE is e or s
 *
 * Leases and places are ephemeral: they end with their owner's session.  The czxid of a lease is
 * its fence.  OWNER is 32 hexadecimal digits.  NAME is percent-encoded, since ZooKeeper refuses
 * some characters.  The server removes containers some time after their last child has gone.
 *
 * Exclusion.  One transaction creates @l as an ephemeral node, the exclusive lease, and deletes its
 * owner's place.  It fails if @l exists, so there is at most one exclusive lease.  A shared lease
 * is created as a child of @l.  That fails if @l is ephemeral, since such nodes have no children,
 * and no ephemeral @l can be created while the container exists.  An exclusive claim may remove the
 * container in the same transaction, which fails if it has a child.  The version of an ephemeral
 * @l is 1 and that of the container is 0, so a removal never hits the wrong kind.  The end of an
 * exclusive lease is one transaction, too, whatever ends it: its owner, the end of the session, or
 * lease_break.  All this holds without a clock, and whatever the order of places is.
 *
 * Order.  The order of places decides only whose turn it is.  Sequence numbers start anew if the
 * container is removed and made again; then there is no place left that an old number could be
 * compared with.  Fences grow all the same, since a zxid belongs to the whole ensemble.
 *
 * Pure functions; no state. */
#ifndef HF_LEASE_ZOOKEEPER_QUEUE_H
#define HF_LEASE_ZOOKEEPER_QUEUE_H

#include "lease/lease.h"

#define ZK_OWNER_LEN (2 * LEASE_OWNER_SIZE)
/* "@w-OWNER-e--2147483648" */
#define ZK_NODE_SIZE (ZK_OWNER_LEN + 24)
#define ZK_NAME_SIZE (3 * LEASE_NAME_MAX + 1)

struct zk_node {
    char name[ZK_NODE_SIZE];
    char owner[ZK_OWNER_LEN + 1];
    enum hf_mode mode;
    int32_t sequence; /* of a place */
    bool holds;
};

/* The name of the node whose kind says how the lock is held. */
#define ZK_LATCH "@l"

/* The nodes of a lock at one moment. */
struct zk_list {
    bool exists;     /* does the lock have a node? */
    bool is_latched; /* is there an @l? */
    VEC(struct zk_node) holders;
    VEC(struct zk_node) waiters; /* in the order of service */
};

/* Negative, 0 or positive as `a` was given out before, with or after `b`.  Sequence numbers wrap
 * around after 2147483647. */
static inline int32_t zk_sequence_compare(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* Writes the encoded name of a lock. */
void zk_name_encode(const char *key, size_t len, char ret[ZK_NAME_SIZE]);
/* Returns false if no key has this encoded form. */
bool zk_name_decode(const char *name, char ret[LEASE_NAME_MAX + 1]);

/* The name of a node; that of a place lacks the sequence number, which the server appends. */
void zk_node_name(const uint8_t owner[LEASE_OWNER_SIZE], enum hf_mode mode, bool holds,
                  char ret[ZK_NODE_SIZE]);
/* Returns false if the name is not one of ours. */
bool zk_node_parse(const char *name, struct zk_node *ret);

/* Adds a child by its name; names that are not ours are ignored. */
void zk_list_add(struct zk_list *list, const char *name);
/* Puts the waiters in order, after the last zk_list_add. */
void zk_list_sort(struct zk_list *list);
void zk_list_clear(struct zk_list *list);
void zk_list_close(struct zk_list *list);

/* What a request finds. */
struct zk_view {
    const struct zk_node *lease; /* its own; NULL: none */
    const struct zk_node *place; /* its own; NULL: none */
    size_t before;               /* the number of places before its own, or before a new one */
    bool is_held;                /* another's lease conflicts with it */
    /* Some lease or place has to go before its turn comes, and this is the node that it waits for:
     * the last conflicting place before it, or else the first conflicting lease. */
    const struct zk_node *awaits;
    /* The first place, if it is another's and its owner has its turn. */
    const struct zk_node *called;
};
void zk_view_init(struct zk_view *view, const struct zk_list *list, const char *owner,
                  enum hf_mode mode);

/* Is @l a container? */
static inline bool zk_list_is_shared(const struct zk_list *list)
{
    return list->is_latched && (list->holders.n == 0 || list->holders.v[0].mode == HF_SHARED);
}
/* May the request be granted now?  At its turn; and if it does not queue, also if nobody holds the
 * lock. */
bool zk_view_may_take(const struct zk_view *view, const struct zk_list *list, bool queue);
#endif
