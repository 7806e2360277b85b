/* The keys, values and transactions of the etcd journal, in the JSON of etcd's gateway.  Bodies are
 * written straight into the client's buffer; see journal_etcd.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "cell/journal_etcd.h"
#include "etcd/base64.h"

/* ---- keys ---- */

struct etcd_key journal_key(const struct etcd_journal *e, const char *name)
{
    struct etcd_key key;
    size_t len = strlen(name);
    hf_check(e->prefix.len + len < sizeof key.text);
    memcpy(key.text, e->prefix.data, e->prefix.len);
    memcpy(key.text + e->prefix.len, name, len);
    key.len = e->prefix.len + len;
    return key;
}

struct etcd_key journal_key_at(const struct etcd_journal *e, const char *kind, int64_t number)
{
    char name[48];
    snprintf(name, sizeof name, "%s/%0*" PRId64, kind, ETCD_NUMBER_LEN, number);
    return journal_key(e, name);
}

struct etcd_key journal_key_part(const struct etcd_journal *e, const char *kind, int64_t number,
                                 int64_t no)
{
    char name[72];
    snprintf(name, sizeof name, "%s/%0*" PRId64 "/%0*" PRId64, kind, ETCD_NUMBER_LEN, number,
             ETCD_NUMBER_LEN, no);
    return journal_key(e, name);
}

/* ---- requests ---- */

static struct buf *body(struct etcd_journal *e) { return &e->client->body; }

static void put_field(struct buf *b, const char *name, const void *data, size_t len)
{
    buf_char(b, '"');
    buf_str(b, name);
    buf_lit(b, "\":\"");
    base64_put(b, data, len);
    buf_char(b, '"');
}

static void part(struct etcd_journal *e, const char *text)
{
    if (!e->is_first)
        buf_char(body(e), ',');
    e->is_first = false;
    buf_str(body(e), text);
}

void txn_begin(struct etcd_journal *e)
{
    buf_lit(etcd_body(e->client), "{\"compare\":[");
    e->is_first = true;
}

void txn_then(struct etcd_journal *e)
{
    buf_lit(body(e), "],\"success\":[");
    e->is_first = true;
}

void txn_else(struct etcd_journal *e)
{
    buf_lit(body(e), "],\"failure\":[");
    e->is_first = true;
}

static void compare_value(struct etcd_journal *e, const struct etcd_key *key, const char *how,
                          const char *text)
{
    part(e, "{\"target\":\"VALUE\",\"result\":\"");
    buf_str(body(e), how);
    buf_lit(body(e), "\",");
    put_field(body(e), "key", key->text, key->len);
    buf_char(body(e), ',');
    put_field(body(e), "value", text, strlen(text));
    buf_char(body(e), '}');
}

void txn_if_master(struct etcd_journal *e, const struct journal_mandate *m)
{
    const struct etcd_key key = journal_key(e, "head/master");
    char claim[2 * JOURNAL_CLAIM_SIZE + 1], text[sizeof claim + ETCD_NUMBER_LEN + 1];
    hex_format(m->claim, sizeof m->claim, claim);
    snprintf(text, sizeof text, "%0*" PRId64 " %s", ETCD_NUMBER_LEN, m->epoch, claim);
    compare_value(e, &key, "EQUAL", text);
}

/* etcd compares whole values, so the master's is compared with what comes just before and just
 * behind all claims of the epoch. */
void txn_if_epoch(struct etcd_journal *e, int64_t epoch)
{
    const struct etcd_key key = journal_key(e, "head/master");
    char text[ETCD_NUMBER_LEN + 2];
    if (epoch == 0) {
        txn_if_absent(e, &key);
        return;
    }
    snprintf(text, sizeof text, "%0*" PRId64 " ", ETCD_NUMBER_LEN, epoch);
    compare_value(e, &key, "GREATER", text);
    text[ETCD_NUMBER_LEN]++;
    compare_value(e, &key, "LESS", text);
}

void txn_if_value(struct etcd_journal *e, const struct etcd_key *key, const char *text)
{
    compare_value(e, key, "EQUAL", text);
}

void txn_if_newest(struct etcd_journal *e, int64_t index)
{
    const struct etcd_key key = journal_key(e, "head/snapshots");
    char text[ETCD_NUMBER_LEN + 1];
    snprintf(text, sizeof text, "%0*" PRId64, ETCD_NUMBER_LEN, index);
    compare_value(e, &key, "LESS", text);
}

void txn_if_absent(struct etcd_journal *e, const struct etcd_key *key)
{
    part(e, "{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\",");
    put_field(body(e), "key", key->text, key->len);
    buf_char(body(e), '}');
}

void txn_put(struct etcd_journal *e, const struct etcd_key *key, const void *data, size_t len)
{
    part(e, "{\"request_put\":{");
    put_field(body(e), "key", key->text, key->len);
    buf_char(body(e), ',');
    put_field(body(e), "value", data, len);
    buf_lit(body(e), "}}");
}

void txn_read(struct etcd_journal *e, const struct etcd_key *key)
{
    part(e, "{\"request_range\":{");
    put_field(body(e), "key", key->text, key->len);
    buf_lit(body(e), "}}");
}

static void put_range(struct etcd_journal *e, const struct etcd_key *from,
                      const struct etcd_key *to)
{
    put_field(body(e), "key", from->text, from->len);
    if (!to)
        return;
    buf_char(body(e), ',');
    put_field(body(e), "range_end", to->text, to->len);
}

void txn_read_range(struct etcd_journal *e, const struct etcd_key *from, const struct etcd_key *to,
                    size_t limit, bool keys_only)
{
    part(e, "{\"request_range\":{");
    put_range(e, from, to);
    buf_printf(body(e), ",\"limit\":\"%zu\"%s}}", limit, keys_only ? ",\"keys_only\":true" : "");
}

void txn_delete(struct etcd_journal *e, const struct etcd_key *from, const struct etcd_key *to)
{
    part(e, "{\"request_delete_range\":{");
    put_range(e, from, to);
    buf_lit(body(e), "}}");
}

/* ---- answers ---- */

enum journal_result journal_failed(enum hf_result result, const struct hf_fault *fault,
                                   struct hf_err *err)
{
    bool is_unknown = result == HF_UNKNOWN;
    (void)hf_err_set(err, is_unknown ? HF_OUTCOME_UNKNOWN : HF_UNAVAILABLE, "%s", fault->msg);
    return is_unknown ? JOURNAL_UNKNOWN : JOURNAL_UNREACHABLE;
}

enum journal_result txn_run(struct etcd_journal *e, enum etcd_kind kind, json_t **ret,
                            struct hf_err *err)
{
    struct hf_fault fault;
    buf_lit(body(e), "]}");
    etcd_begin(e->client, 0);
    enum hf_result result = etcd_call(e->client, "/v3/kv/txn", kind, ret, NULL, &fault);
    return result == HF_DONE ? JOURNAL_DONE : journal_failed(result, &fault, err);
}

bool txn_succeeded(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "succeeded"));
}

const json_t *txn_keys(const json_t *answer, size_t i)
{
    const json_t *response = json_array_get(json_object_get(answer, "responses"), i);
    return json_object_get(json_object_get(response, "response_range"), "kvs");
}

bool txn_value(const json_t *kv, struct buf *ret)
{
    const json_t *value = json_object_get(kv, "value");
    const char *text = json_string_value(value);
    /* etcd leaves an empty value out. */
    bool is_value =
        kv && (!value || base64_take(ret, text ? text : "?", json_string_length(value)));
    if (is_value) {
        buf_char(ret, '\0');
        ret->len--;
    }
    return is_value;
}

/* ---- values ---- */

void journal_put_number(struct buf *b, int64_t number)
{
    buf_printf(b, "%0*" PRId64, ETCD_NUMBER_LEN, number);
}

bool journal_take_number(const char **text, int64_t *ret)
{
    int64_t number = 0;
    for (size_t i = 0; i < ETCD_NUMBER_LEN; i++) {
        char c = (*text)[i];
        if (c < '0' || c > '9' || number > (INT64_MAX - (c - '0')) / 10)
            return false;
        number = 10 * number + (c - '0');
    }
    *text += ETCD_NUMBER_LEN;
    *ret = number;
    return true;
}

static bool take_space(const char **text) { return *(*text)++ == ' '; }

static bool take_claim(const char **text, uint8_t ret[JOURNAL_CLAIM_SIZE])
{
    for (size_t i = 0; i < JOURNAL_CLAIM_SIZE; i++) {
        int high = hex_digit((*text)[0]), low = high < 0 ? -1 : hex_digit((*text)[1]);
        if (low < 0)
            return false;
        ret[i] = (uint8_t)(16 * high + low);
        *text += 2;
    }
    return true;
}

static bool read_master(const char *text, struct journal_head *ret)
{
    return journal_take_number(&text, &ret->epoch) && take_space(&text) &&
           take_claim(&text, ret->claim) && !*text && ret->epoch > 0;
}

static bool read_url(const char *text, struct journal_head *ret)
{
    if (strlen(text) > JOURNAL_URL_MAX)
        return false;
    memcpy(ret->url, text, strlen(text) + 1);
    return true;
}

static bool read_tail(const char *text, struct journal_head *ret)
{
    return journal_take_number(&text, &ret->last) && !*text;
}

void journal_put_snapshots(struct buf *b, const struct etcd_snapshots *s)
{
    for (size_t i = 0; i < 2; i++) {
        if (i > 0)
            buf_char(b, ' ');
        journal_put_number(b, s->index[i]);
        buf_char(b, ' ');
        journal_put_number(b, s->n_chunks[i]);
    }
}

static bool read_snapshots(const char *text, struct etcd_snapshots *ret)
{
    for (size_t i = 0; i < 2; i++)
        if ((i > 0 && !take_space(&text)) || !journal_take_number(&text, &ret->index[i]) ||
            !take_space(&text) || !journal_take_number(&text, &ret->n_chunks[i]))
            return false;
    return !*text && (ret->index[0] > ret->index[1] || ret->index[0] == 0);
}

void txn_read_head(struct etcd_journal *e)
{
    const struct etcd_key from = journal_key(e, "head/"), to = journal_key(e, "head0");
    txn_read_range(e, &from, &to, 16, false);
}

/* Reads one key of the head.  Returns false if it is malformed. */
static bool read_part(const char *name, const char *text, struct journal_head *ret,
                      struct etcd_snapshots *ret_snapshots)
{
    return strcmp(name, "master") == 0      ? read_master(text, ret)
           : strcmp(name, "url") == 0       ? read_url(text, ret)
           : strcmp(name, "tail") == 0      ? read_tail(text, ret)
           : strcmp(name, "snapshots") == 0 ? read_snapshots(text, ret_snapshots)
                                            : false;
}

enum journal_result txn_head(const struct etcd_journal *e, const json_t *answer,
                             struct journal_head *ret, struct etcd_snapshots *ret_snapshots,
                             struct hf_err *err)
{
    const json_t *kvs = txn_keys(answer, 0);
    const size_t skip = e->prefix.len + sizeof "head/" - 1, n = json_array_size(kvs);
    bool is_right = n == 0 || n == 4; /* four different keys, since etcd has each once */
    struct buf text = {0};
    *ret = (struct journal_head){0};
    *ret_snapshots = (struct etcd_snapshots){0};
    for (size_t i = 0; is_right && i < n; i++) {
        const json_t *kv = json_array_get(kvs, i);
        size_t len = 0;
        char *key = base64_decode(json_object_get(kv, "key"), &len);
        text.len = 0;
        is_right = key && len > skip && txn_value(kv, &text) &&
                   read_part(key + skip, text.data, ret, ret_snapshots);
        free(key);
    }
    ret->snapshot = ret_snapshots->index[0];
    buf_close(&text);
    return is_right ? JOURNAL_DONE
                    : journal_damaged(err, "keys of its head are missing or malformed");
}

bool journal_is_master(const struct journal_head *head, const struct journal_mandate *m)
{
    return m->epoch > 0 && head->epoch == m->epoch &&
           memcmp(head->claim, m->claim, sizeof m->claim) == 0;
}

enum journal_result journal_damaged(struct hf_err *err, const char *what)
{
    (void)hf_err_set(err, HF_INTERNAL, "the journal in etcd: %s", what);
    return JOURNAL_DAMAGED;
}
