/* Claims about the etcd journal on a real etcd that the suite over all journals (tests/journal)
 * cannot make: attempts that arrive late, byte for byte, a full database, pages of large entries,
 * keys that somebody else has changed, warnings. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cell/journal_etcd.h"
#include "etcd/base64.h"
#include "support/etcd_server.h"
#include "support/proxy.h"

#define URL "http://one:7000"

static struct etcd_server server;
static struct random dice;
static int n_cells;

/* ---- what the claims share ---- */

/* A journal that no other claim uses, on the server of this port. */
struct scene {
    char url[160];
    struct journal *j;
    struct journal_mandate m;
    struct journal_page page;
    struct hf_err err;
};

static struct journal *must_open(const char *url)
{
    struct journal *j = NULL;
    struct hf_err err = {0};
    struct journal_options options = {.clock = &clock_system, .timeout_ms = 20000};
    if (journal_etcd.open(url, &options, &j, &err) != HF_OK)
        print_error("%s\n", err.msg);
    assert_non_null(j);
    return j;
}

static void begin(struct scene *s, int port)
{
    *s = (struct scene){.m.epoch = 1};
    snprintf(s->url, sizeof s->url, "etcd://127.0.0.1:%d?prefix=claim%d/", port, ++n_cells);
    s->j = must_open(s->url);
    random_bytes(&dice, s->m.claim, sizeof s->m.claim);
    assert_int_equal(journal_etcd.claim(s->j, &s->m, URL, &s->err), JOURNAL_DONE);
}

static void end(struct scene *s)
{
    journal_etcd.close(s->j);
    journal_page_close(&s->page);
}

static void id_of(int64_t index, uint8_t ret[JOURNAL_ID_SIZE])
{
    memset(ret, 0, JOURNAL_ID_SIZE);
    memcpy(ret, &index, sizeof index);
}

static enum journal_result append(struct scene *s, int64_t index, const void *data, size_t len)
{
    uint8_t id[JOURNAL_ID_SIZE];
    id_of(index, id);
    s->err = (struct hf_err){0};
    return journal_etcd.append(s->j, &s->m, index, id, data, len, &s->err);
}

static void must_append(struct scene *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i <= to; i++) {
        char text[32];
        snprintf(text, sizeof text, "entry %lld", (long long)i);
        assert_int_equal(append(s, i, text, strlen(text)), JOURNAL_DONE);
    }
}

static enum journal_result read_after(struct scene *s, int64_t after)
{
    s->err = (struct hf_err){0};
    return journal_etcd.read(s->j, after, &s->page, &s->err);
}

static void must_point(struct scene *s, int64_t index, const char *text)
{
    assert_int_equal(journal_etcd.put_chunk(s->j, &s->m, index, 0, text, strlen(text), &s->err),
                     JOURNAL_DONE);
    assert_int_equal(journal_etcd.point(s->j, &s->m, index, 1, &s->err), JOURNAL_DONE);
}

static void must_trim(struct scene *s)
{
    for (bool more = true; more;)
        assert_int_equal(journal_etcd.trim(s->j, &s->m, &more, &s->err), JOURNAL_DONE);
}

/* The bytes of the last request, with a NUL. */
static char *last_request(const struct scene *s)
{
    const struct buf *body = &etcd_journal_of(s->j)->client->body;
    return hf_strndup(body->data, body->len);
}

/* Sends a request again, as if it had been on its way until now; tells whether it did something. */
static bool arrives_late(char *request)
{
    char answer[4096];
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/txn", request, answer, sizeof answer), 200);
    free(request);
    return strstr(answer, "\"succeeded\":true") != NULL;
}

/* Everything that is stored under the journal's prefix, as etcd tells it. */
static void dump(const struct scene *s, struct buf *ret)
{
    const struct etcd_journal *e = etcd_journal_of(s->j);
    char *answer = hf_alloc((size_t)1 << 20);
    struct buf body = {0}, end_key = {0};
    buf_put(&end_key, e->prefix.data, e->prefix.len);
    end_key.data[end_key.len - 1]++;
    buf_lit(&body, "{\"key\":\"");
    base64_put(&body, e->prefix.data, e->prefix.len);
    buf_lit(&body, "\",\"range_end\":\"");
    base64_put(&body, end_key.data, end_key.len);
    buf_put(&body, "\"}", 3);
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/range", body.data, answer, (size_t)1 << 20),
                     200);
    const char *keys = strstr(answer, "\"kvs\"");
    ret->len = 0;
    buf_str(ret, keys ? keys : "");
    buf_char(ret, '\0');
    buf_close(&body);
    buf_close(&end_key);
    free(answer);
}

/* Changes a key behind the journal's back. */
static void set_key(const struct scene *s, const char *name, const char *value)
{
    const struct etcd_key key = journal_key(etcd_journal_of(s->j), name);
    struct buf body = {0};
    char answer[512];
    buf_lit(&body, "{\"key\":\"");
    base64_put(&body, key.text, key.len);
    buf_lit(&body, "\",\"value\":\"");
    base64_put(&body, value, strlen(value));
    buf_put(&body, "\"}", 3);
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/put", body.data, answer, sizeof answer), 200);
    buf_close(&body);
}

static void delete_key(const struct etcd_key *key)
{
    struct buf body = {0};
    char answer[512];
    buf_lit(&body, "{\"key\":\"");
    base64_put(&body, key->text, key->len);
    buf_put(&body, "\"}", 3);
    assert_int_equal(
        etcd_server_ask(&server, "/v3/kv/deleterange", body.data, answer, sizeof answer), 200);
    buf_close(&body);
}

/* ---- claims ---- */

static void writes_that_arrive_late_change_nothing(void **state)
{
    (void)state;
    struct scene s;
    struct buf before = {0}, after = {0};
    char *late[8];
    size_t n = 0;
    begin(&s, server.port);
    late[n++] = last_request(&s);
    must_append(&s, 1, 5);
    late[n++] = last_request(&s);
    must_append(&s, 6, 10);
    must_point(&s, 10, "ten");
    late[n++] = last_request(&s);
    must_append(&s, 11, 20);
    must_point(&s, 20, "twenty");
    must_trim(&s);
    must_append(&s, 21, 30);
    late[n++] = last_request(&s);
    must_point(&s, 30, "thirty");
    dump(&s, &before);
    for (size_t i = 0; i < n; i++)
        assert_false(arrives_late(late[i]));
    dump(&s, &after);
    assert_string_equal(before.data, after.data);
    must_append(&s, 31, 31);
    buf_close(&before);
    buf_close(&after);
    end(&s);
}

/* Before the next master claims, the effects of the two last writes are undone by hand, so that
 * nothing but the change of the master can stop them when they arrive. */
static void writes_of_a_deposed_master_that_arrive_late_change_nothing(void **state)
{
    (void)state;
    struct scene s;
    struct buf before = {0}, after = {0};
    struct journal_mandate next = {.epoch = 2, .claim = "the next claim."};
    char *late[8];
    size_t n = 0;
    bool more;
    begin(&s, server.port);
    must_append(&s, 1, 30);
    must_point(&s, 10, "a");
    must_point(&s, 20, "b");
    must_point(&s, 25, "c");
    late[n++] = last_request(&s);
    set_key(&s, "head/snapshots",
            "0000000000000000020 0000000000000000001 0000000000000000010 0000000000000000001");
    must_trim(
        &s); /* deletes entries 1 to 10, then compacts: its last transaction is not the last */
    must_append(&s, 31, 31);
    late[n++] = last_request(&s);
    set_key(&s, "head/tail", "0000000000000000030");
    const struct etcd_key gone = journal_key_at(etcd_journal_of(s.j), "entry", 31);
    delete_key(&gone);
    assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 30, 0, "d", 1, &s.err), JOURNAL_DONE);
    late[n++] = last_request(&s);
    assert_int_equal(journal_etcd.claim(s.j, &next, "http://two:7000", &s.err), JOURNAL_DONE);
    dump(&s, &before);
    for (size_t i = 0; i < n; i++)
        assert_false(arrives_late(late[i]));
    assert_int_equal(append(&s, 31, "x", 1), JOURNAL_DEPOSED);
    assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 30, 0, "e", 1, &s.err), JOURNAL_DEPOSED);
    assert_int_equal(journal_etcd.point(s.j, &s.m, 30, 1, &s.err), JOURNAL_DEPOSED);
    assert_int_equal(journal_etcd.trim(s.j, &s.m, &more, &s.err), JOURNAL_DEPOSED);
    assert_int_equal(journal_etcd.claim(s.j, &s.m, URL, &s.err), JOURNAL_DEPOSED);
    dump(&s, &after);
    assert_string_equal(before.data, after.data);
    buf_close(&before);
    buf_close(&after);
    end(&s);
}

static void an_entry_that_was_trimmed_is_not_stored_again(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, server.port);
    must_append(&s, 1, 600);
    must_point(&s, 550, "a");
    must_point(&s, 590, "b");
    must_trim(&s);
    assert_int_equal(append(&s, 5, "entry 5", 7), JOURNAL_DEPOSED);
    assert_int_equal(read_after(&s, 4), JOURNAL_TRIMMED);
    assert_int_equal(s.page.head.last, 600);
    assert_int_equal(s.page.head.snapshot, 590);
    assert_int_equal(read_after(&s, 550), JOURNAL_DONE);
    assert_int_equal(s.page.entries.v[0].index, 551);
    end(&s);
}

static void an_append_whose_answer_was_lost_is_found_or_stored(void **state)
{
    (void)state;
    struct relay *proxy;
    struct scene s;
    proxy = proxy_start(server.port);
    begin(&s, relay_port(proxy));
    must_append(&s, 1, 1);
    relay_set(proxy, RELAY_CUT);
    assert_int_equal(append(&s, 2, "two", 3), JOURNAL_UNKNOWN);
    assert_true(s.err.msg[0] != '\0');
    relay_set(proxy, RELAY_PASS);
    assert_int_equal(append(&s, 2, "two", 3), JOURNAL_FOUND);
    must_append(&s, 3, 3);
    relay_redirect(proxy, 1); /* nobody listens there */
    relay_set(proxy, RELAY_CUT);
    assert_int_equal(append(&s, 4, "four", 4), JOURNAL_UNKNOWN);
    enum journal_result result = append(&s, 4, "four", 4);
    assert_true(result == JOURNAL_UNREACHABLE || result == JOURNAL_UNKNOWN);
    relay_redirect(proxy, server.port);
    relay_set(proxy, RELAY_PASS);
    assert_int_equal(append(&s, 4, "four", 4), JOURNAL_FOUND);
    /* It is found also after the end of the mastership. */
    struct journal_mandate next = {.epoch = 2, .claim = "the next claim."};
    assert_int_equal(journal_etcd.claim(s.j, &next, "http://two:7000", &s.err), JOURNAL_DONE);
    assert_int_equal(append(&s, 4, "four", 4), JOURNAL_FOUND);
    assert_int_equal(append(&s, 5, "five", 4), JOURNAL_DEPOSED);
    end(&s);
    relay_stop(proxy);
}

static void nothing_is_done_if_no_server_listens(void **state)
{
    (void)state;
    struct etcd_server other = {0};
    struct scene s;
    assert_true(etcd_server_start(&other));
    begin(&s, other.port);
    must_append(&s, 1, 1);
    etcd_server_kill(&other);
    /* The kept connection may still take the first request. */
    enum journal_result result = append(&s, 2, "two", 3);
    assert_true(result == JOURNAL_UNREACHABLE || result == JOURNAL_UNKNOWN);
    assert_int_equal(append(&s, 2, "two", 3), JOURNAL_UNREACHABLE);
    assert_int_equal(read_after(&s, 0), JOURNAL_UNREACHABLE);
    assert_true(s.err.msg[0] != '\0');
    etcd_server_again(&other, true);
    assert_int_equal(read_after(&s, 0), JOURNAL_DONE);
    assert_int_equal(s.page.head.last, 1);
    must_append(&s, 2, 2);
    end(&s);
    etcd_server_stop(&other);
}

static void pages_of_large_entries_are_bounded_and_whole(void **state)
{
    (void)state;
    enum { N = 90 };
    struct scene s;
    char *data = hf_alloc(JOURNAL_CHUNK_MAX);
    begin(&s, server.port);
    /* Small ones first, so that the reader expects small ones to follow. */
    for (int64_t i = 1; i <= N; i++) {
        memset(data, (int)i, JOURNAL_CHUNK_MAX);
        assert_int_equal(append(&s, i, data, i <= 70 ? 10 : JOURNAL_CHUNK_MAX), JOURNAL_DONE);
    }
    int64_t at = 0;
    while (at < N) {
        assert_int_equal(read_after(&s, at), JOURNAL_DONE);
        assert_int_equal(s.page.head.last, N);
        assert_true(s.page.entries.n > 0);
        assert_true(s.page.bytes.len - s.page.entries.v[0].len <= JOURNAL_PAGE_MAX);
        for (size_t i = 0; i < s.page.entries.n; i++) {
            const struct journal_entry *entry = &s.page.entries.v[i];
            memset(data, (int)++at, JOURNAL_CHUNK_MAX);
            assert_int_equal(entry->index, at);
            assert_int_equal(entry->len, at <= 70 ? 10 : JOURNAL_CHUNK_MAX);
            assert_memory_equal(s.page.bytes.data + entry->at, data, entry->len);
        }
    }
    assert_int_equal(read_after(&s, N), JOURNAL_DONE);
    assert_int_equal(s.page.entries.n, 0);
    free(data);
    end(&s);
}

static void a_snapshot_of_many_chunks_is_read_whole(void **state)
{
    (void)state;
    enum { CHUNKS = 19 };
    struct scene s;
    struct buf snapshot = {0};
    int64_t index = 0;
    uint8_t *chunk = hf_alloc(JOURNAL_CHUNK_MAX);
    begin(&s, server.port);
    must_append(&s, 1, 3);
    buf_lit(&snapshot, "kept");
    assert_int_equal(journal_etcd.load(s.j, &index, &snapshot, &s.err), JOURNAL_NONE);
    for (int no = 0; no < CHUNKS; no++) {
        memset(chunk, no, JOURNAL_CHUNK_MAX);
        assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 3, no, chunk, JOURNAL_CHUNK_MAX, &s.err),
                         JOURNAL_DONE);
    }
    assert_int_equal(journal_etcd.point(s.j, &s.m, 3, CHUNKS + 1, &s.err), JOURNAL_DAMAGED);
    assert_int_equal(journal_etcd.load(s.j, &index, &snapshot, &s.err), JOURNAL_NONE);
    assert_int_equal(journal_etcd.point(s.j, &s.m, 3, CHUNKS, &s.err), JOURNAL_DONE);
    assert_int_equal(journal_etcd.point(s.j, &s.m, 3, CHUNKS, &s.err), JOURNAL_DONE);
    assert_int_equal(journal_etcd.load(s.j, &index, &snapshot, &s.err), JOURNAL_DONE);
    assert_int_equal(index, 3);
    assert_int_equal(snapshot.len, 4 + CHUNKS * JOURNAL_CHUNK_MAX);
    assert_memory_equal(snapshot.data, "kept", 4);
    for (int no = 0; no < CHUNKS; no++) {
        memset(chunk, no, JOURNAL_CHUNK_MAX);
        assert_memory_equal(snapshot.data + 4 + (size_t)no * JOURNAL_CHUNK_MAX, chunk,
                            JOURNAL_CHUNK_MAX);
    }
    const struct etcd_key last = journal_key_part(etcd_journal_of(s.j), "chunk", 3, CHUNKS - 1);
    delete_key(&last);
    assert_int_equal(journal_etcd.load(s.j, &index, &snapshot, &s.err), JOURNAL_DAMAGED);
    buf_close(&snapshot);
    free(chunk);
    end(&s);
}

static void only_the_chunks_of_two_snapshots_are_kept(void **state)
{
    (void)state;
    struct scene s;
    struct buf all = {0};
    begin(&s, server.port);
    must_append(&s, 1, 50);
    must_point(&s, 10, "first");
    /* A snapshot that was begun and never pointed at. */
    assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 15, 0, "half", 4, &s.err), JOURNAL_DONE);
    must_point(&s, 20, "second");
    must_point(&s, 30, "third");
    /* What comes late, or again, changes nothing. */
    assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 30, 0, "other", 5, &s.err), JOURNAL_DONE);
    assert_int_equal(journal_etcd.put_chunk(s.j, &s.m, 20, 0, "again", 5, &s.err), JOURNAL_DONE);
    assert_int_equal(journal_etcd.point(s.j, &s.m, 20, 1, &s.err), JOURNAL_DAMAGED);
    int64_t index;
    assert_int_equal(journal_etcd.load(s.j, &index, &all, &s.err), JOURNAL_DONE);
    assert_int_equal(index, 30);
    assert_int_equal(all.len, 5);
    assert_memory_equal(all.data, "third", 5);
    dump(&s, &all);
    size_t n = 0;
    struct buf name = {0};
    for (int64_t i = 1; i <= 50; i++) {
        const struct etcd_key key = journal_key_part(etcd_journal_of(s.j), "chunk", i, 0);
        name.len = 0;
        base64_put(&name, key.text, key.len);
        buf_char(&name, '\0');
        bool is_there = strstr(all.data, name.data) != NULL;
        assert_int_equal(is_there, i == 20 || i == 30);
        n += is_there;
    }
    assert_int_equal(n, 2);
    buf_close(&all);
    buf_close(&name);
    end(&s);
}

static void what_somebody_else_has_changed_is_noticed(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, server.port);
    must_append(&s, 1, 5);
    /* The journal was restored from a backup under its master. */
    set_key(&s, "head/tail", "0000000000000000003");
    assert_int_equal(append(&s, 6, "six", 3), JOURNAL_DAMAGED);
    assert_non_null(strstr(s.err.msg, "backup"));
    set_key(&s, "head/tail", "five");
    assert_int_equal(read_after(&s, 0), JOURNAL_DAMAGED);
    set_key(&s, "head/tail", "0000000000000000005");
    set_key(&s, "head/snapshots", "");
    assert_int_equal(read_after(&s, 0), JOURNAL_DAMAGED);
    const struct etcd_key snapshots = journal_key(etcd_journal_of(s.j), "head/snapshots");
    delete_key(&snapshots);
    assert_int_equal(read_after(&s, 0), JOURNAL_DAMAGED);
    set_key(&s, "head/snapshots",
            "0000000000000000000 0000000000000000000 0000000000000000000 0000000000000000000");
    set_key(&s, "entry/0000000000000000003", "short");
    assert_int_equal(read_after(&s, 0), JOURNAL_DAMAGED);
    const struct etcd_key third = journal_key_at(etcd_journal_of(s.j), "entry", 3);
    delete_key(&third);
    assert_int_equal(read_after(&s, 0), JOURNAL_DAMAGED);
    assert_int_equal(read_after(&s, 2), JOURNAL_DAMAGED);
    assert_int_equal(read_after(&s, 3), JOURNAL_DONE);
    set_key(&s, "head/master", "1 x");
    assert_int_equal(read_after(&s, 3), JOURNAL_DAMAGED);
    const struct etcd_key master = journal_key(etcd_journal_of(s.j), "head/master");
    delete_key(&master);
    assert_int_equal(read_after(&s, 3), JOURNAL_DAMAGED);
    /* A claim from the beginning would write a second history over the first. */
    assert_int_equal(journal_etcd.claim(s.j, &s.m, URL, &s.err), JOURNAL_DAMAGED);
    end(&s);
}

/* Fills the database beside the journal until it is full. */
static void *fill(void *arg)
{
    const struct etcd_server *s = arg;
    struct buf body = {0};
    char answer[512], *data = hf_alloc(100 * 1024);
    int status = 200;
    for (int i = 0; status == 200 && i < 1000; i++) {
        char key[32];
        int len =
            snprintf(key, sizeof key, "%llx", (unsigned long long)(uintptr_t)&body + (unsigned)i);
        body.len = 0;
        buf_lit(&body, "{\"key\":\"");
        base64_put(&body, key, (size_t)len);
        buf_lit(&body, "\",\"value\":\"");
        base64_put(&body, data, 100 * 1024);
        buf_put(&body, "\"}", 3);
        status = etcd_server_ask(s, "/v3/kv/put", body.data, answer, sizeof answer);
    }
    buf_close(&body);
    free(data);
    return NULL;
}

/* A transaction that passes etcd's first look at the quota and is over it when its turn comes is
 * carried out, and answered as if it had been refused. */
static void a_full_database_is_told_from_a_stored_entry(void **state)
{
    (void)state;
    struct etcd_server small = {.quota_mb = 16};
    pthread_t fillers[3];
    struct scene s;
    struct buf lines = {0};
    static char data[100 * 1024];
    int64_t stored = 0, refused = 0;
    assert_true(etcd_server_start(&small));
    begin(&s, small.port);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&fillers[i], NULL, fill, &small), 0);
    for (int64_t i = 1; refused < 3 && i < 1000; i++) {
        enum journal_result result = append(&s, stored + 1, data, sizeof data);
        if (result == JOURNAL_DONE || result == JOURNAL_FOUND) {
            stored++;
            continue;
        }
        assert_int_equal(result, JOURNAL_UNREACHABLE);
        assert_non_null(strstr(s.err.msg, "full"));
        assert_non_null(strstr(s.err.msg, "defragment"));
        refused++;
    }
    for (size_t i = 0; i < 3; i++)
        pthread_join(fillers[i], NULL);
    assert_int_equal(refused, 3);
    assert_int_equal(read_after(&s, stored - 1), JOURNAL_DONE);
    assert_int_equal(s.page.head.last, stored);
    assert_int_equal(s.page.entries.n, 1);
    assert_int_equal(journal_etcd.warnings(s.j, &lines, &s.err), HF_OK);
    buf_char(&lines, '\0');
    assert_non_null(strstr(lines.data, "NOSPACE"));
    assert_non_null(strstr(lines.data, "of its quota of 16 MB"));
    buf_close(&lines);
    end(&s);
    etcd_server_stop(&small);
}

static void warnings_name_what_an_operator_should_change(void **state)
{
    (void)state;
    struct scene s;
    struct buf lines = {0};
    begin(&s, server.port);
    assert_int_equal(journal_etcd.warnings(s.j, &lines, &s.err), HF_OK);
    buf_char(&lines, '\0');
    assert_non_null(strstr(lines.data, "etcd has 1 voting member:"));
    assert_null(strstr(lines.data, "quota"));
    assert_null(strstr(lines.data, "alarm"));
    buf_close(&lines);
    end(&s);
}

static void reports_are_listed_until_they_are_taken_back(void **state)
{
    (void)state;
    struct scene s;
    struct journal_server self = {.url = URL, .index = 7, .beat = 1}, all[8];
    struct journal_server other = {.url = "http://two:7000", .index = 5, .beat = -9};
    size_t n = 0;
    begin(&s, server.port);
    assert_int_equal(journal_etcd.report(s.j, &other, NULL, all, 8, &n, &s.err), JOURNAL_DONE);
    assert_int_equal(n, 1);
    assert_int_equal(journal_etcd.report(s.j, &self, NULL, all, 8, &n, &s.err), JOURNAL_DONE);
    assert_int_equal(n, 2);
    self.index = 9;
    assert_int_equal(journal_etcd.report(s.j, &self, NULL, all, 1, &n, &s.err), JOURNAL_DONE);
    assert_int_equal(n, 1);
    assert_string_equal(all[0].url, URL);
    assert_int_equal(all[0].index, 9);
    assert_int_equal(journal_etcd.report(s.j, &other, URL, all, 8, &n, &s.err), JOURNAL_DONE);
    assert_int_equal(n, 1);
    assert_string_equal(all[0].url, other.url);
    assert_int_equal(journal_etcd.report(s.j, &other, NULL, all, 8, &n, &s.err), JOURNAL_DONE);
    assert_int_equal(n, 1);
    end(&s);
}

static void a_trim_lets_etcd_forget_its_history(void **state)
{
    (void)state;
    struct scene s;
    char answer[512];
    begin(&s, server.port);
    must_append(&s, 1, 20);
    must_point(&s, 10, "a");
    must_point(&s, 15, "b");
    must_trim(&s);
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/range",
                                     "{\"key\":\"AA==\",\"revision\":\"2\"}", answer,
                                     sizeof answer),
                     400);
    assert_non_null(strstr(answer, "has been compacted"));
    /* Somebody else may compact, too. */
    must_trim(&s);
    end(&s);
}

static void wrong_addresses_are_refused(void **state)
{
    (void)state;
    struct journal *j = NULL;
    struct hf_err err;
    struct journal_options options = {.clock = &clock_system, .timeout_ms = 1000};
    assert_int_equal(journal_etcd.open("etcd://127.0.0.1:x", &options, &j, &err),
                     HF_INVALID_REQUEST);
    assert_int_equal(journal_etcd.open("etcd://127.0.0.1?user=x", &options, &j, &err),
                     HF_INVALID_REQUEST);
    assert_int_equal(journal_etcd.open("etcd://127.0.0.1:1", &options, &j, &err), HF_UNAVAILABLE);
    assert_null(j);
}

static int start_server(void **state)
{
    (void)state;
    random_init_system(&dice);
    return etcd_server_start(&server) ? 0 : -1; /* is etcd installed? */
}

static int stop_server(void **state)
{
    (void)state;
    etcd_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_that_arrive_late_change_nothing),
        cmocka_unit_test(writes_of_a_deposed_master_that_arrive_late_change_nothing),
        cmocka_unit_test(an_entry_that_was_trimmed_is_not_stored_again),
        cmocka_unit_test(an_append_whose_answer_was_lost_is_found_or_stored),
        cmocka_unit_test(nothing_is_done_if_no_server_listens),
        cmocka_unit_test(pages_of_large_entries_are_bounded_and_whole),
        cmocka_unit_test(a_snapshot_of_many_chunks_is_read_whole),
        cmocka_unit_test(only_the_chunks_of_two_snapshots_are_kept),
        cmocka_unit_test(what_somebody_else_has_changed_is_noticed),
        cmocka_unit_test(a_full_database_is_told_from_a_stored_entry),
        cmocka_unit_test(warnings_name_what_an_operator_should_change),
        cmocka_unit_test(reports_are_listed_until_they_are_taken_back),
        cmocka_unit_test(a_trim_lets_etcd_forget_its_history),
        cmocka_unit_test(wrong_addresses_are_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
