/* The journal in an etcd cluster (3.4 or later), over its JSON gateway: for cells that want the
 * consensus of several machines.  One handle, one thread, one connection; keys in journal_etcd.h.
 *
 * Every write of a master is one transaction that compares its epoch and claim, so that the writes
 * of a deposed master do nothing, whenever they arrive.  An append also compares the index of the
 * last entry: a delayed attempt of an append that was repeated, stored and trimmed since finds its
 * index taken.  If a comparison fails, the same transaction reads what is there, which tells an
 * entry that was stored already (JOURNAL_FOUND) from the end of the mastership (JOURNAL_DEPOSED).
 *
 * Reads are linearizable.  No leases of etcd are used, and no clock of its matters.
 *
 * URL: etcd[s]://[user:password@]host[:port][,host...][?prefix=...]; see etcd/address.h. */
#include "cell/journal_etcd.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "etcd/base64.h"

#define PREFIX "holdfast-"
#define TIMEOUT_MS 2000
/* How many entries a page asks for.  etcd bounds answers by the number of keys alone, so a page is
 * sized by the entries of the one before it; the most that an answer can have is ENTRIES_MAX times
 * JOURNAL_CHUNK_MAX. */
#define ENTRIES_MIN 4
#define ENTRIES_MAX 64
#define ENTRIES_FIRST 16

extern const struct journal_driver journal_etcd;

/* ---- handles ---- */

static void etcd_journal_close(struct journal *j)
{
    struct etcd_journal *e = etcd_journal_of(j);
    etcd_client_close(e->client);
    free(e->client);
    buf_close(&e->prefix);
    buf_close(&e->value);
    free(e);
}

/* Is there an etcd that we know, with a quorum, and may we read from it? */
static enum hf_result try_reading(struct etcd_journal *e, struct hf_fault *fault)
{
    char version[32];
    json_t *json;
    const struct etcd_key key = journal_key(e, "head/master");
    etcd_begin(e->client, 0);
    enum hf_result result = etcd_check_version(e->client, version, fault);
    if (result != HF_DONE)
        return result;
    buf_lit(etcd_body(e->client), "{\"key\":\"");
    base64_put(&e->client->body, key.text, key.len);
    buf_lit(&e->client->body, "\"}");
    result = etcd_call(e->client, "/v3/kv/range", ETCD_READ, &json, NULL, fault);
    if (result == HF_DONE)
        json_decref(json);
    return result;
}

static enum hf_status etcd_journal_open(const char *url, const struct journal_options *options,
                                        struct journal **ret, struct hf_err *err)
{
    struct etcd_address address;
    struct hf_fault fault;
    if (etcd_address_parse(url, PREFIX, &address, &fault) != HF_DONE)
        return hf_err_set(err, HF_INVALID_REQUEST, "%s", fault.msg);
    struct etcd_journal *e = hf_alloc(sizeof *e);
    struct etcd_shared *shared = etcd_shared_new(address, NULL, NULL);
    e->journal.driver = &journal_etcd;
    e->entries_a_page = ENTRIES_FIRST;
    buf_str(&e->prefix, address.prefix);
    buf_lit(&e->prefix, "cell/");
    e->client = hf_alloc(sizeof *e->client);
    etcd_client_init(e->client, shared, options->timeout_ms ? options->timeout_ms : TIMEOUT_MS);
    etcd_shared_free(shared); /* the client has a reference */
    if (try_reading(e, &fault) != HF_DONE) {
        etcd_journal_close(&e->journal);
        return hf_err_set(err, HF_UNAVAILABLE, "%s", fault.msg);
    }
    *ret = &e->journal;
    return HF_OK;
}

/* ---- claim ---- */

/* An empty journal. */
static void put_beginning(struct etcd_journal *e)
{
    const struct etcd_key tail = journal_key(e, "head/tail"),
                          snapshots = journal_key(e, "head/snapshots");
    e->value.len = 0;
    journal_put_number(&e->value, 0);
    txn_put(e, &tail, e->value.data, e->value.len);
    e->value.len = 0;
    journal_put_snapshots(&e->value, &(struct etcd_snapshots){0});
    txn_put(e, &snapshots, e->value.data, e->value.len);
}

static enum journal_result etcd_journal_claim(struct journal *j, const struct journal_mandate *m,
                                              const char *url, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    const struct etcd_key master = journal_key(e, "head/master"),
                          tail = journal_key(e, "head/tail"),
                          key_of_url = journal_key(e, "head/url");
    char claim[2 * JOURNAL_CLAIM_SIZE + 1];
    struct journal_head head;
    struct etcd_snapshots snapshots;
    json_t *answer;
    hf_check(strlen(url) <= JOURNAL_URL_MAX);
    if (m->epoch < 1)
        return JOURNAL_DEPOSED; /* there is no epoch before that */
    hex_format(m->claim, sizeof m->claim, claim);
    e->value.len = 0;
    journal_put_number(&e->value, m->epoch);
    buf_printf(&e->value, " %s", claim);
    txn_begin(e);
    txn_if_epoch(e, m->epoch - 1);
    if (m->epoch == 1)
        txn_if_absent(e, &tail);
    txn_then(e);
    txn_put(e, &master, e->value.data, e->value.len);
    txn_put(e, &key_of_url, url, strlen(url));
    if (m->epoch == 1)
        put_beginning(e);
    txn_else(e);
    txn_read_head(e);
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    if (!txn_succeeded(answer)) {
        result = txn_head(e, answer, &head, &snapshots, err);
        if (result == JOURNAL_DONE)
            result = journal_is_master(&head, m) ? JOURNAL_FOUND : JOURNAL_DEPOSED;
    }
    json_decref(answer);
    return result;
}

/* ---- append ---- */

/* Has the key, if there is one, an entry with this id? */
static bool has_id(const json_t *kv, const uint8_t id[JOURNAL_ID_SIZE])
{
    struct buf value = {0};
    bool is_equal = txn_value(kv, &value) && value.len >= JOURNAL_ID_SIZE &&
                    memcmp(value.data, id, JOURNAL_ID_SIZE) == 0;
    buf_close(&value);
    return is_equal;
}

/* Why was an entry not stored?  The answer has the head, and the entry of the index.  An entry that
 * was stored is found even if there is another master now: it is a part of the history. */
static enum journal_result judge_refusal(const struct etcd_journal *e, const json_t *answer,
                                         const struct journal_mandate *m, int64_t index,
                                         const uint8_t id[JOURNAL_ID_SIZE], struct hf_err *err)
{
    struct journal_head head;
    struct etcd_snapshots snapshots;
    const json_t *kv = json_array_get(txn_keys(answer, 1), 0);
    enum journal_result result = txn_head(e, answer, &head, &snapshots, err);
    if (result != JOURNAL_DONE)
        return result;
    if (has_id(kv, id))
        return JOURNAL_FOUND;
    if (journal_is_master(&head, m) && head.last < index - 1)
        return journal_damaged(err, "it ends before the last entry that was stored: was it "
                                    "restored from a backup?");
    return JOURNAL_DEPOSED;
}

/* etcd is full, and says so in answer to an append.  The append may have been what filled it, and
 * is done then; nothing more will come of it otherwise. */
static enum journal_result resolve_full(struct etcd_journal *e, int64_t index,
                                        const uint8_t id[JOURNAL_ID_SIZE], struct hf_err *err)
{
    const struct etcd_key key = journal_key_at(e, "entry", index);
    struct hf_err unread;
    json_t *answer;
    txn_begin(e);
    txn_then(e);
    txn_read(e, &key);
    if (txn_run(e, ETCD_READ, &answer, &unread) != JOURNAL_DONE)
        return JOURNAL_UNKNOWN;
    bool is_stored = has_id(json_array_get(txn_keys(answer, 0), 0), id);
    json_decref(answer);
    err->code = HF_UNAVAILABLE;
    return is_stored ? JOURNAL_FOUND : JOURNAL_UNREACHABLE;
}

static enum journal_result etcd_journal_append(struct journal *j, const struct journal_mandate *m,
                                               int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                               const void *data, size_t len, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    const struct etcd_key tail = journal_key(e, "head/tail"),
                          key = journal_key_at(e, "entry", index);
    json_t *answer;
    hf_check(index > 0 && len <= JOURNAL_CHUNK_MAX);
    txn_begin(e);
    txn_if_master(e, m);
    e->value.len = 0;
    journal_put_number(&e->value, index - 1);
    buf_char(&e->value, '\0');
    txn_if_value(e, &tail, e->value.data);
    txn_then(e);
    e->value.len = 0;
    buf_put(&e->value, id, JOURNAL_ID_SIZE);
    buf_put(&e->value, data, len);
    txn_put(e, &key, e->value.data, e->value.len);
    e->value.len = 0;
    journal_put_number(&e->value, index);
    txn_put(e, &tail, e->value.data, e->value.len);
    txn_else(e);
    txn_read_head(e);
    txn_read(e, &key);
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result == JOURNAL_UNKNOWN && e->client->is_full)
        return resolve_full(e, index, id, err);
    if (result != JOURNAL_DONE)
        return result;
    if (!txn_succeeded(answer))
        result = judge_refusal(e, answer, m, index, id, err);
    json_decref(answer);
    return result;
}

/* ---- read ---- */

/* Takes one entry.  False: it is not the one of this index, or is no entry. */
static bool take_entry(struct etcd_journal *e, const json_t *kv, int64_t index,
                       struct journal_page *page)
{
    const struct etcd_key key = journal_key_at(e, "entry", index);
    size_t at = page->bytes.len;
    e->value.len = 0;
    const json_t *name = json_object_get(kv, "key");
    if (!json_is_string(name) ||
        !base64_take(&e->value, json_string_value(name), json_string_length(name)) ||
        e->value.len != key.len || memcmp(e->value.data, key.text, key.len) != 0)
        return false;
    e->value.len = 0;
    if (!txn_value(kv, &e->value) || e->value.len < JOURNAL_ID_SIZE)
        return false;
    buf_put(&page->bytes, e->value.data + JOURNAL_ID_SIZE, e->value.len - JOURNAL_ID_SIZE);
    *vec_push(&page->entries) =
        (struct journal_entry){.index = index, .at = at, .len = page->bytes.len - at};
    return true;
}

/* Asks for as many entries next time as fit into a page, if they are like these. */
static void size_next_page(struct etcd_journal *e, const struct journal_page *page)
{
    if (page->entries.n == 0)
        return;
    size_t n = JOURNAL_PAGE_MAX / (page->bytes.len / page->entries.n + 1);
    e->entries_a_page = n < ENTRIES_MIN ? ENTRIES_MIN : n > ENTRIES_MAX ? ENTRIES_MAX : n;
}

static enum journal_result take_page(struct etcd_journal *e, const json_t *answer, int64_t after,
                                     struct journal_page *ret, struct hf_err *err)
{
    struct etcd_snapshots snapshots;
    const json_t *kvs = txn_keys(answer, 1);
    enum journal_result result = txn_head(e, answer, &ret->head, &snapshots, err);
    if (result != JOURNAL_DONE)
        return result;
    for (size_t i = 0; i < json_array_size(kvs); i++) {
        size_t len_before = ret->bytes.len;
        if (!take_entry(e, json_array_get(kvs, i), after + 1 + (int64_t)i, ret))
            return i == 0 && after < snapshots.index[1]
                       ? JOURNAL_TRIMMED
                       : journal_damaged(err, "an entry is missing or malformed");
        if (i > 0 && ret->bytes.len - ret->entries.v[0].len > JOURNAL_PAGE_MAX) {
            ret->entries.n--;
            ret->bytes.len = len_before;
            break;
        }
    }
    size_next_page(e, ret);
    if (ret->entries.n == 0 && after < ret->head.last)
        return after < snapshots.index[1] ? JOURNAL_TRIMMED
                                          : journal_damaged(err, "the last entries are missing");
    return JOURNAL_DONE;
}

static enum journal_result etcd_journal_read(struct journal *j, int64_t after,
                                             struct journal_page *ret, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    const struct etcd_key from = journal_key_at(e, "entry", after + 1),
                          to = journal_key(e, "entry0"); /* '0' is the character behind '/' */
    json_t *answer;
    journal_page_clear(ret);
    txn_begin(e);
    txn_then(e);
    txn_read_head(e);
    txn_read_range(e, &from, &to, e->entries_a_page, false);
    enum journal_result result = txn_run(e, ETCD_READ, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    result = take_page(e, answer, after, ret, err);
    json_decref(answer);
    return result;
}

const struct journal_driver journal_etcd = {
    .name = "etcd",
    .schemes = (const char *const[]){"etcd://", "etcds://", NULL},
    .shared = true,
    .open = etcd_journal_open,
    .close = etcd_journal_close,
    .read = etcd_journal_read,
    .claim = etcd_journal_claim,
    .append = etcd_journal_append,
    .put_chunk = etcd_journal_put_chunk,
    .point = etcd_journal_point,
    .load = etcd_journal_load,
    .trim = etcd_journal_trim,
    .report = etcd_journal_report,
    .warnings = etcd_journal_warnings,
};
