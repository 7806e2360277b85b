/* See wire.h. */
#include "lease/etcd/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "etcd/base64.h"
#include "etcd/client.h"

/* ---- subjects ---- */

void etcd_subject_init_name(struct subject *s, const char *prefix, const char *key, size_t key_len)
{
    size_t prefix_len = strlen(prefix);
    *s = (struct subject){0};
    hf_check(prefix_len + key_len + 1 < sizeof s->base);
    memcpy(s->base, prefix, prefix_len);
    memcpy(s->base + prefix_len, key, key_len);
    s->base[prefix_len + key_len] = '\t';
    s->base_len = prefix_len + key_len + 1;
}

void etcd_subject_init(struct subject *s, const char *prefix, const struct lease_request *r)
{
    uint8_t hash[DIGEST_SIZE];
    etcd_subject_init_name(s, prefix, r->key, r->key_len);
    s->mode = r->mode == HF_SHARED ? WIRE_SHARED : WIRE_EXCLUSIVE;
    lease_owner_text(r->owner, s->owner);
    digest((struct iovec[]){digest_part(r->owner, LEASE_OWNER_SIZE),
                            digest_part(s->base, s->base_len)},
           2, hash);
    uint64_t number;
    memcpy(&number, hash, sizeof number);
    s->lease = (int64_t)(number >> 1 | 1); /* positive; 0 would let etcd choose */
}

/* ---- writing ---- */

static void put_base64(struct buf *b, const char *name, const void *data, size_t len)
{
    buf_printf(b, "\"%s\":\"", name);
    base64_put(b, data, len);
    buf_char(b, '"');
}

void wire_key(struct buf *b, const struct subject *s, char mode)
{
    char key[sizeof s->base + 1 + sizeof s->owner];
    memcpy(key, s->base, s->base_len);
    key[s->base_len] = mode;
    memcpy(key + s->base_len + 1, s->owner, sizeof s->owner);
    put_base64(b, "key", key, s->base_len + sizeof s->owner);
}

/* The end of a range is its beginning with the last byte one larger. */
void wire_range(struct buf *b, const struct subject *s, char mode)
{
    char key[sizeof s->base + 1];
    size_t len = s->base_len;
    memcpy(key, s->base, len);
    if (mode)
        key[len++] = mode;
    put_base64(b, "key", key, len);
    buf_char(b, ',');
    key[len - 1]++;
    put_base64(b, "range_end", key, len);
}

void wire_value(struct buf *b, bool claimed, int64_t wall_ms, const char *label, size_t label_len)
{
    char value[32 + LEASE_LABEL_MAX];
    int len = snprintf(value, 32, "%c %" PRId64 " ", claimed ? 'c' : 'w', wall_ms);
    if (label_len)
        memcpy(value + len, label, label_len);
    put_base64(b, "value", value, (size_t)len + label_len);
}

/* ---- reading ---- */

static void read_value(struct etcd_entry *e, const char *text, size_t len)
{
    char *end;
    e->claimed = len == 0 || text[0] != 'w'; /* what we do not know we do not take */
    if (len < 4)
        return;
    e->wall_ms = strtoll(text + 2, &end, 10);
    if (*end == ' ')
        snprintf(e->label, sizeof e->label, "%s", end + 1);
}

bool etcd_entry_read(struct etcd_entry *ret, const json_t *kv, const struct subject *s)
{
    size_t len = 0, value_len = 0;
    char *key = base64_decode(json_object_get(kv, "key"), &len);
    bool is_ours = key && len == s->base_len + 1 + 2 * LEASE_OWNER_SIZE &&
                   memcmp(key, s->base, s->base_len) == 0;
    if (is_ours) {
        *ret = (struct etcd_entry){.mode = key[s->base_len],
                                   .create = etcd_number(kv, "create_revision"),
                                   .mod = etcd_number(kv, "mod_revision"),
                                   .lease = etcd_number(kv, "lease")};
        memcpy(ret->owner, key + s->base_len + 1, 2 * LEASE_OWNER_SIZE);
        char *value = base64_decode(json_object_get(kv, "value"), &value_len);
        read_value(ret, value ? value : "", value_len);
        free(value);
    }
    free(key);
    return is_ours;
}

void etcd_line_close(struct etcd_line *line)
{
    vec_close(&line->all);
    *line = (struct etcd_line){0};
}

void etcd_line_read(struct etcd_line *ret, const json_t *answer, const struct subject *s)
{
    size_t i, j, n_ranges = 0;
    json_t *response, *kv;
    vec_clear(&ret->all);
    ret->count = 0;
    ret->has_own = false;
    ret->revision = etcd_number(json_object_get(answer, "header"), "revision");
    ret->term = etcd_number(json_object_get(answer, "header"), "raft_term");
    ret->succeeded = json_is_true(json_object_get(answer, "succeeded"));
    json_array_foreach(json_object_get(answer, "responses"), i, response)
    {
        const json_t *nested = json_object_get(response, "response_txn");
        const json_t *range = json_object_get(response, "response_range");
        if (nested)
            ret->succeeded |= json_is_true(json_object_get(nested, "succeeded"));
        if (!range)
            continue;
        const json_t *kvs = json_object_get(range, "kvs");
        if (n_ranges++ == 0) {
            ret->has_own = etcd_entry_read(&ret->own, json_array_get(kvs, 0), s);
            continue;
        }
        ret->count = (size_t)etcd_number(range, "count");
        json_array_foreach(kvs, j, kv) if (!etcd_entry_read(vec_push(&ret->all), kv, s))
            ret->all.n--;
    }
}

/* ---- judging ---- */

/* Does a request of this mode wait for the end of `e`? */
static bool blocks(const struct etcd_entry *e, char mode, int64_t create)
{
    bool concerns = mode == WIRE_EXCLUSIVE || e->mode == WIRE_EXCLUSIVE;
    return concerns && e->create != create && (e->claimed || e->create < create);
}

bool etcd_line_is_free(const struct etcd_line *line, char mode, int64_t create)
{
    for (size_t i = 0; i < line->all.n; i++)
        if (blocks(&line->all.v[i], mode, create))
            return false;
    return true;
}

/* The youngest of those that came before, so that each waiter watches another key; if there is none
 * a holder that came later and did not queue. */
const struct etcd_entry *etcd_line_blocker(const struct etcd_line *line, char mode, int64_t create)
{
    const struct etcd_entry *found = NULL;
    for (size_t i = 0; i < line->all.n; i++) {
        const struct etcd_entry *e = &line->all.v[i];
        if (blocks(e, mode, create) && (e->create < create || !found))
            found = e;
    }
    return found;
}

size_t etcd_line_position(const struct etcd_line *line, int64_t create)
{
    size_t n = 0, n_claimed = 0;
    for (size_t i = 0; i < line->all.n; i++) {
        n_claimed += line->all.v[i].claimed;
        n += !line->all.v[i].claimed && line->all.v[i].create <= create;
    }
    bool is_listed = line->all.n > 0 && line->all.v[line->all.n - 1].create >= create;
    return is_listed || line->count <= line->all.n ? n : line->count - n_claimed;
}

size_t etcd_line_turn(const struct etcd_line *line, int64_t create)
{
    size_t n = 0;
    for (size_t i = 0; i < line->all.n; i++)
        if (line->all.v[i].claimed)
            return 0;
    while (n < line->all.n &&
           (n == 0 || (line->all.v[0].mode == WIRE_SHARED && line->all.v[n].mode == WIRE_SHARED)))
        if (line->all.v[n++].create >= create)
            return 0;
    return n;
}
