/* Snapshots in the etcd journal, and what they make superfluous.
 *
 * The key head/snapshots names the last two.  `point` compares what it found there, so that a
 * delayed attempt cannot bring an older snapshot back, and deletes the chunks of all others in the
 * same transaction.  `trim` deletes entries that the older of the two covers, and compacts etcd's
 * history, which would keep every version of every key otherwise.  The space is used again by later
 * entries; the database file shrinks only when an operator defragments it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell/journal_etcd.h"
#include "etcd/base64.h"

/* An answer with so many chunks has at most 2 MiB, and 4/3 of that in base64. */
#define CHUNKS_A_PAGE 8
/* Entries that one call of `trim` deletes. */
#define TRIM_MAX 256
/* A snapshot can be replaced twice while it is read, so that its chunks go. */
#define LOADS_MAX 5
/* An attempt of our own whose answer was lost can come in between. */
#define POINTS_MAX 3

/* ---- writing ---- */

/* A chunk of a snapshot that is not newer than those that are pointed at is left as it is: it comes
 * late, or again. */
enum journal_result etcd_journal_put_chunk(struct journal *j, const struct journal_mandate *m,
                                           int64_t index, int64_t no, const void *data, size_t len,
                                           struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    const struct etcd_key key = journal_key_part(e, "chunk", index, no);
    json_t *answer;
    hf_check(index > 0 && no >= 0 && len <= JOURNAL_CHUNK_MAX);
    txn_begin(e);
    txn_if_master(e, m);
    txn_if_newest(e, index);
    txn_then(e);
    txn_put(e, &key, data, len);
    txn_else(e);
    txn_read_head(e);
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    if (!txn_succeeded(answer)) {
        struct journal_head head;
        struct etcd_snapshots snapshots;
        result = txn_head(e, answer, &head, &snapshots, err);
        if (result == JOURNAL_DONE && !journal_is_master(&head, m))
            result = JOURNAL_DEPOSED;
    }
    json_decref(answer);
    return result;
}

/* Reads the head, and how many of the first `n_chunks` chunks of a snapshot are stored. ETCD_WRITE:
 * the caller is about to write, and does not tell which of its exchanges was lost. */
static enum journal_result look(struct etcd_journal *e, enum etcd_kind kind, int64_t index,
                                int64_t n_chunks, struct journal_head *ret,
                                struct etcd_snapshots *ret_snapshots, int64_t *ret_n_stored,
                                struct hf_err *err)
{
    const struct etcd_key from = journal_key_part(e, "chunk", index, 0),
                          to = journal_key_part(e, "chunk", index, n_chunks);
    json_t *answer;
    txn_begin(e);
    txn_then(e);
    txn_read_head(e);
    if (n_chunks > 0)
        txn_read_range(e, &from, &to, 1, true);
    enum journal_result result = txn_run(e, kind, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    result = txn_head(e, answer, ret, ret_snapshots, err);
    const json_t *chunks = json_array_get(json_object_get(answer, "responses"), 1);
    *ret_n_stored = etcd_number(json_object_get(chunks, "response_range"), "count");
    json_decref(answer);
    return result;
}

static void delete_chunks(struct etcd_journal *e, int64_t from_index, int64_t to_index)
{
    const struct etcd_key from = journal_key_at(e, "chunk", from_index),
                          to = journal_key_at(e, "chunk", to_index);
    if (from_index < to_index)
        txn_delete(e, &from, &to);
}

/* Writes the pointers, if they are `before` still.  *ret_done says whether they were. */
static enum journal_result write_pointers(struct etcd_journal *e, const struct journal_mandate *m,
                                          const struct etcd_snapshots *before,
                                          const struct etcd_snapshots *now, bool *ret_done,
                                          struct hf_err *err)
{
    const struct etcd_key key = journal_key(e, "head/snapshots"),
                          rest = journal_key_part(e, "chunk", now->index[0], now->n_chunks[0]),
                          end = journal_key_at(e, "chunk", now->index[0] + 1);
    json_t *answer;
    txn_begin(e);
    txn_if_master(e, m);
    e->value.len = 0;
    journal_put_snapshots(&e->value, before);
    buf_char(&e->value, '\0');
    txn_if_value(e, &key, e->value.data);
    txn_then(e);
    e->value.len = 0;
    journal_put_snapshots(&e->value, now);
    txn_put(e, &key, e->value.data, e->value.len);
    delete_chunks(e, 0, now->index[1]);
    delete_chunks(e, now->index[1] + 1, now->index[0]);
    txn_delete(e, &rest, &end);
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    *ret_done = txn_succeeded(answer);
    json_decref(answer);
    return JOURNAL_DONE;
}

enum journal_result etcd_journal_point(struct journal *j, const struct journal_mandate *m,
                                       int64_t index, int64_t n_chunks, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    bool is_done = false;
    hf_check(index >= 0 && n_chunks >= 0);
    for (int i = 0; i < POINTS_MAX; i++) {
        struct journal_head head;
        struct etcd_snapshots before;
        int64_t n_stored;
        enum journal_result result =
            look(e, ETCD_WRITE, index, n_chunks, &head, &before, &n_stored, err);
        if (result != JOURNAL_DONE)
            return result;
        if (!journal_is_master(&head, m))
            return JOURNAL_DEPOSED;
        if (before.index[0] == index)
            return JOURNAL_DONE; /* an earlier attempt did it */
        if (before.index[0] > index)
            return journal_damaged(err, "it has a newer snapshot than the one to be pointed at");
        if (n_stored < n_chunks || index > head.last)
            return journal_damaged(err, "chunks of a snapshot, or its last entry, are missing");
        const struct etcd_snapshots now = {.index = {index, before.index[0]},
                                           .n_chunks = {n_chunks, before.n_chunks[0]}};
        result = write_pointers(e, m, &before, &now, &is_done, err);
        if (result != JOURNAL_DONE || is_done)
            return result;
    }
    (void)hf_err_set(err, HF_UNAVAILABLE, "the journal in etcd: its snapshots change all the time");
    return JOURNAL_UNREACHABLE;
}

/* ---- reading ---- */

/* Appends up to CHUNKS_A_PAGE chunks from `no` on.  *ret_n: their number; 0: the snapshot is not
 * there any more, or was not written whole. */
static enum journal_result load_page(struct etcd_journal *e, int64_t index, int64_t no,
                                     struct buf *ret, size_t *ret_n, struct hf_err *err)
{
    const struct etcd_key from = journal_key_part(e, "chunk", index, no),
                          to = journal_key_at(e, "chunk", index + 1);
    json_t *answer, *kv;
    size_t i;
    txn_begin(e);
    txn_then(e);
    txn_read_range(e, &from, &to, CHUNKS_A_PAGE, false);
    enum journal_result result = txn_run(e, ETCD_READ, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    *ret_n = 0;
    json_array_foreach(txn_keys(answer, 0), i, kv)
    {
        size_t len = 0;
        const struct etcd_key key = journal_key_part(e, "chunk", index, no + (int64_t)i);
        char *name = base64_decode(json_object_get(kv, "key"), &len);
        bool is_next = name && len == key.len && memcmp(name, key.text, len) == 0;
        free(name);
        if (!is_next || !txn_value(kv, ret))
            break;
        (*ret_n)++;
    }
    json_decref(answer);
    return JOURNAL_DONE;
}

/* Appends a snapshot.  *ret_whole: it was there until its end. */
static enum journal_result load_snapshot(struct etcd_journal *e, int64_t index, int64_t n_chunks,
                                         struct buf *ret, bool *ret_whole, struct hf_err *err)
{
    enum journal_result result = JOURNAL_DONE;
    int64_t no = 0;
    for (size_t n = 1; result == JOURNAL_DONE && no < n_chunks && n > 0; no += (int64_t)n)
        result = load_page(e, index, no, ret, &n, err);
    *ret_whole = no == n_chunks;
    return result;
}

enum journal_result etcd_journal_load(struct journal *j, int64_t *ret_index, struct buf *ret,
                                      struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    size_t len_before = ret->len;
    struct etcd_snapshots snapshots = {0};
    bool is_whole = false;
    for (int i = 0; i < LOADS_MAX && !is_whole; i++) {
        struct journal_head head;
        int64_t index = snapshots.index[0], n_stored;
        enum journal_result result = look(e, ETCD_READ, 0, 0, &head, &snapshots, &n_stored, err);
        if (result != JOURNAL_DONE)
            return result;
        if (snapshots.index[0] == 0)
            return JOURNAL_NONE;
        if (i > 0 && snapshots.index[0] == index)
            return journal_damaged(err, "chunks of the newest snapshot are missing");
        ret->len = len_before;
        result = load_snapshot(e, snapshots.index[0], snapshots.n_chunks[0], ret, &is_whole, err);
        if (result != JOURNAL_DONE) {
            ret->len = len_before;
            return result;
        }
    }
    if (!is_whole) {
        ret->len = len_before;
        (void)hf_err_set(err, HF_UNAVAILABLE,
                         "the journal in etcd: its snapshots are replaced "
                         "faster than they can be read");
        return JOURNAL_UNREACHABLE;
    }
    *ret_index = snapshots.index[0];
    return JOURNAL_DONE;
}

/* ---- trimming ---- */

/* Lets etcd forget the history up to a revision.  That it has been forgotten already will do. */
static enum journal_result compact(struct etcd_journal *e, int64_t revision, struct hf_err *err)
{
    struct hf_fault fault;
    buf_printf(etcd_body(e->client), "{\"revision\":\"%" PRId64 "\"}", revision);
    etcd_begin(e->client, 0);
    enum hf_result result = etcd_call_text(e->client, "/v3/kv/compaction", ETCD_WRITE, &fault);
    if (result == HF_DONE || strstr(fault.msg, "has been compacted"))
        return JOURNAL_DONE;
    return journal_failed(result, &fault, err);
}

/* Reads the head and the index of the first entry; 0: there is none.  As a write; see look. */
static enum journal_result look_for_first(struct etcd_journal *e, struct journal_head *ret,
                                          struct etcd_snapshots *ret_snapshots, int64_t *ret_first,
                                          int64_t *ret_revision, struct hf_err *err)
{
    const struct etcd_key from = journal_key(e, "entry/"), to = journal_key(e, "entry0");
    json_t *answer;
    size_t len;
    txn_begin(e);
    txn_then(e);
    txn_read_head(e);
    txn_read_range(e, &from, &to, 1, true);
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    result = txn_head(e, answer, ret, ret_snapshots, err);
    char *name =
        base64_decode(json_object_get(json_array_get(txn_keys(answer, 1), 0), "key"), &len);
    const char *digits = name && len > from.len ? name + from.len : "";
    *ret_revision = etcd_number(json_object_get(answer, "header"), "revision");
    *ret_first = 0;
    if (name && !journal_take_number(&digits, ret_first))
        result = journal_damaged(err, "the key of an entry is malformed");
    free(name);
    json_decref(answer);
    return result;
}

enum journal_result etcd_journal_trim(struct journal *j, const struct journal_mandate *m,
                                      bool *ret_more, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    struct journal_head head;
    struct etcd_snapshots snapshots;
    int64_t first, revision;
    json_t *answer;
    enum journal_result result = look_for_first(e, &head, &snapshots, &first, &revision, err);
    if (result != JOURNAL_DONE)
        return result;
    if (!journal_is_master(&head, m))
        return JOURNAL_DEPOSED;
    *ret_more = false;
    int64_t last = snapshots.index[1];
    if (first == 0 || first > last)
        return compact(e, revision, err);
    if (last - first >= TRIM_MAX)
        last = first + TRIM_MAX - 1;
    const struct etcd_key from = journal_key_at(e, "entry", first),
                          to = journal_key_at(e, "entry", last + 1);
    txn_begin(e);
    txn_if_master(e, m);
    txn_then(e);
    txn_delete(e, &from, &to);
    result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    bool is_done = txn_succeeded(answer);
    revision = etcd_number(json_object_get(answer, "header"), "revision");
    json_decref(answer);
    if (!is_done)
        return JOURNAL_DEPOSED;
    *ret_more = last < snapshots.index[1];
    return *ret_more ? JOURNAL_DONE : compact(e, revision, err);
}
