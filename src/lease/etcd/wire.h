/* The keys of locks, and the parts of etcd's requests and answers that are about them.
 *
 * A request is one key:   PREFIX NAME <tab> MODE OWNER
 *
 * MODE is 'e' (exclusive) or 's' (shared), OWNER 32 hex digits.  A name has no control characters,
 * so the tab ends it: no name's keys lie among those of another, and keys are in the order of
 * names.  The value is "w TIME LABEL" while the request waits and "c TIME LABEL" once it is
 * claimed, TIME being the client's wall clock in milliseconds.  The key's lease belongs to this
 * request alone, and its number follows from owner and name, so that every handle knows it.  Pure
 * functions. */
#ifndef HF_LEASE_ETCD_WIRE_H
#define HF_LEASE_ETCD_WIRE_H

#include <jansson.h>

#include "etcd/address.h"
#include "lease/lease.h"

#define WIRE_EXCLUSIVE 'e'
#define WIRE_SHARED 's'
#define WIRE_BOTH '\0'

/* The name of a lock, and the owner of a request for it. */
struct subject {
    char base[ETCD_PREFIX_MAX + LEASE_NAME_MAX + 2]; /* up to the tab, which is included */
    size_t base_len;
    char mode;
    char owner[2 * LEASE_OWNER_SIZE + 1];
    int64_t lease; /* its number */
};
void etcd_subject_init(struct subject *s, const char *prefix, const struct lease_request *r);
void etcd_subject_init_name(struct subject *s, const char *prefix, const char *key, size_t key_len);

/* ---- writing ---- */

/* "key":"..." of the request in this mode. */
void wire_key(struct buf *b, const struct subject *s, char mode);
/* "key":"...","range_end":"..." of all requests for the name in this mode; WIRE_BOTH: in any. */
void wire_range(struct buf *b, const struct subject *s, char mode);
/* "value":"...". */
void wire_value(struct buf *b, bool claimed, int64_t wall_ms, const char *label, size_t label_len);

/* ---- reading ---- */

struct etcd_entry {
    char mode;
    bool claimed;
    char owner[2 * LEASE_OWNER_SIZE + 1];
    char label[LEASE_LABEL_MAX + 1];
    int64_t create, mod; /* revisions; `mod` of a claimed one is its fence */
    int64_t lease;
    int64_t wall_ms; /* when it was claimed, or came */
};
/* The requests for a name at a revision, in the order of their creation. */
struct etcd_line {
    VEC(struct etcd_entry) all;
    size_t count;          /* how many there are; `all` may lack the youngest */
    int64_t revision;      /* of the answer */
    int64_t term;          /* of the leader, as the answer knows it */
    bool succeeded;        /* the comparisons of the transaction held, or those of the nested one */
    bool has_own;          /* there is a request of the subject's owner: */
    struct etcd_entry own; /* this one */
};
void etcd_line_close(struct etcd_line *line);
/* Reads the answer of a transaction.  Its first range is about the subject's own key, the second
 * one about the whole line; either may be missing. */
void etcd_line_read(struct etcd_line *ret, const json_t *answer, const struct subject *s);
/* Reads one "kv"; false: it is not a key of this subject's name. */
HF_MUST_USE bool etcd_entry_read(struct etcd_entry *ret, const json_t *kv, const struct subject *s);

/* ---- judging ---- */

/* May a request that was created at revision `create` be claimed? */
bool etcd_line_is_free(const struct etcd_line *line, char mode, int64_t create);
/* The entry at whose end it is worth looking again; NULL: `line` shows none. */
const struct etcd_entry *etcd_line_blocker(const struct etcd_line *line, char mode, int64_t create);
/* The number of waiters up to the one that was created at revision `create`, which is included.  At
 * most that if the line is not whole. */
size_t etcd_line_position(const struct etcd_line *line, int64_t create);
/* If nobody has claimed the lock it is the turn of the first waiter, or of the readers up to the
 * first writer.  Returns their number; 0: somebody has claimed it, or the waiter that was created
 * at `create` is one of them. */
size_t etcd_line_turn(const struct etcd_line *line, int64_t create);

#endif
