/* What the files of the etcd journal share.  journal_etcd.c has the table and says how it works.
 *
 * Keys, after the prefix of the URL and "cell/":
 *
 *   head/master       EPOCH CLAIM: who may write
 *   head/url          of that server
 *   head/tail         INDEX of the last entry
 *   head/snapshots    INDEX CHUNKS of the newest snapshot, and of the one before
 *   entry/INDEX       the entry's id, then its bytes
 *   chunk/INDEX/NO    a part of the snapshot after INDEX
 *   server/URL        INDEX BEAT: how far a server is
 *
 * Numbers have 19 digits, so that the order of keys and values is that of numbers. */
#ifndef HF_CELL_JOURNAL_ETCD_H
#define HF_CELL_JOURNAL_ETCD_H

#include <jansson.h>

#include "cell/journal.h"
#include "etcd/client.h"

struct etcd_journal {
    struct journal journal;
    struct etcd_client *client;
    struct buf prefix;     /* with "cell/" */
    struct buf value;      /* for values that are put together */
    size_t entries_a_page; /* how many entries the next `read` asks for */
    bool is_first;         /* the next part of the transaction needs no comma */
};
static inline struct etcd_journal *etcd_journal_of(struct journal *j)
{
    return (struct etcd_journal *)(void *)j;
}

/* ---- journal_etcd_txn.c: transactions and what they answer ---- */

#define ETCD_KEY_MAX (ETCD_PREFIX_MAX + 16 + JOURNAL_URL_MAX)
struct etcd_key {
    size_t len;
    char text[ETCD_KEY_MAX + 1];
};
/* A key by its name after the prefix. */
struct etcd_key journal_key(const struct etcd_journal *e, const char *name);
/* KIND/NUMBER. */
struct etcd_key journal_key_at(const struct etcd_journal *e, const char *kind, int64_t number);
/* KIND/NUMBER/NO. */
struct etcd_key journal_key_part(const struct etcd_journal *e, const char *kind, int64_t number,
                                 int64_t no);

/* A transaction is written in this order: begin, comparisons, then, operations if all of them hold,
 * else, operations if not, run. */
void txn_begin(struct etcd_journal *e);
/* Compares epoch and claim. */
void txn_if_master(struct etcd_journal *e, const struct journal_mandate *m);
/* Compares the epoch alone; 0: there is no master. */
void txn_if_epoch(struct etcd_journal *e, int64_t epoch);
void txn_if_value(struct etcd_journal *e, const struct etcd_key *key, const char *text);
/* Compares that all snapshots are older than the one after `index`. */
void txn_if_newest(struct etcd_journal *e, int64_t index);
void txn_if_absent(struct etcd_journal *e, const struct etcd_key *key);
void txn_then(struct etcd_journal *e);
void txn_else(struct etcd_journal *e);
void txn_put(struct etcd_journal *e, const struct etcd_key *key, const void *data, size_t len);
void txn_read(struct etcd_journal *e, const struct etcd_key *key);
/* Reads keys from `from` on and before `to` in their order, at most `limit`, or only their names.
 */
void txn_read_range(struct etcd_journal *e, const struct etcd_key *from, const struct etcd_key *to,
                    size_t limit, bool keys_only);
/* Deletes keys from `from` on and before `to`; NULL: that one. */
void txn_delete(struct etcd_journal *e, const struct etcd_key *from, const struct etcd_key *to);

/* Runs the transaction.  JOURNAL_DONE: *ret is the answer, which the caller frees with json_decref.
 * JOURNAL_UNKNOWN (if it writes), JOURNAL_UNREACHABLE. */
enum journal_result txn_run(struct etcd_journal *e, enum etcd_kind kind, json_t **ret,
                            struct hf_err *err);
enum journal_result journal_failed(enum hf_result result, const struct hf_fault *fault,
                                   struct hf_err *err);
bool txn_succeeded(const json_t *answer);
/* The keys that the i-th operation has read; NULL: none. */
const json_t *txn_keys(const json_t *answer, size_t i);
/* Appends the value of a key, and a NUL that does not count.  False: there is none. */
HF_MUST_USE bool txn_value(const json_t *kv, struct buf *ret);

/* ---- journal_etcd_txn.c: values ---- */

#define ETCD_NUMBER_LEN 19
void journal_put_number(struct buf *b, int64_t number);
/* Reads a number of ETCD_NUMBER_LEN digits and moves *text behind it; false: there is none. */
HF_MUST_USE bool journal_take_number(const char **text, int64_t *ret);

struct etcd_snapshots {
    int64_t index[2], n_chunks[2]; /* the newest first; 0: none */
};
void journal_put_snapshots(struct buf *b, const struct etcd_snapshots *s);
/* Reads the keys of the head, as one operation. */
void txn_read_head(struct etcd_journal *e);
/* What the first operation of a transaction, which was txn_read_head, has read.  JOURNAL_DONE,
 * JOURNAL_DAMAGED. */
enum journal_result txn_head(const struct etcd_journal *e, const json_t *answer,
                             struct journal_head *ret, struct etcd_snapshots *ret_snapshots,
                             struct hf_err *err);
/* Is it the head of this mandate? */
bool journal_is_master(const struct journal_head *head, const struct journal_mandate *m);
enum journal_result journal_damaged(struct hf_err *err, const char *what);

/* ---- journal_etcd_snapshots.c ---- */

enum journal_result etcd_journal_put_chunk(struct journal *j, const struct journal_mandate *m,
                                           int64_t index, int64_t no, const void *data, size_t len,
                                           struct hf_err *err);
enum journal_result etcd_journal_point(struct journal *j, const struct journal_mandate *m,
                                       int64_t index, int64_t n_chunks, struct hf_err *err);
enum journal_result etcd_journal_load(struct journal *j, int64_t *ret_index, struct buf *ret,
                                      struct hf_err *err);
enum journal_result etcd_journal_trim(struct journal *j, const struct journal_mandate *m,
                                      bool *ret_more, struct hf_err *err);

/* ---- journal_etcd_report.c ---- */

enum journal_result etcd_journal_report(struct journal *j, const struct journal_server *self,
                                        const char *gone, struct journal_server *ret, size_t max,
                                        size_t *ret_n, struct hf_err *err);
HF_MUST_USE enum hf_status etcd_journal_warnings(struct journal *j, struct buf *ret_lines,
                                                 struct hf_err *err);

#endif
