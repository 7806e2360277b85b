/* Claims about claiming, appending, reading and reporting, by one server at a time. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_new_journal_is_empty(void **state)
{
    struct world *w = *state;
    struct journal_head head = head_of(w->a);
    const struct journal_mandate m = mandate(1, 'A');
    const struct journal_mandate none = {0};
    struct buf bytes = {0};
    int64_t index = 7;
    assert_int_equal(head.epoch, 0);
    assert_int_equal(head.last, 0);
    assert_int_equal(head.snapshot, 0);
    assert_string_equal(head.url, "");
    expect(w->a->driver->load(w->a, &index, &bytes, &last_err), JOURNAL_NONE);
    assert_int_equal(index, 7);
    assert_int_equal(bytes.len, 0);
    expect(append(w->a, &m, 1, "x"), JOURNAL_DEPOSED);
    expect(append(w->a, &none, 1, "x"), JOURNAL_DEPOSED);
    expect(put_chunk(w->a, &m, 1, 0, "x"), JOURNAL_DEPOSED);
    expect(point(w->a, &m, 1, 1), JOURNAL_DEPOSED);
    expect(trim(w->a, &m), JOURNAL_DEPOSED);
    assert_entries(w->a, 0, (const char *const[]){NULL});
}

static void a_claim_raises_the_epoch_by_one(void **state)
{
    struct world *w = *state;
    const struct journal_mandate first = mandate(1, 'A'), other = mandate(1, 'B'),
                                 jump = mandate(3, 'B'), second = mandate(2, 'B');
    expect(claim(w->a, &jump), JOURNAL_DEPOSED);
    expect(w->a->driver->claim(w->a, &first, "http://one:1", &last_err), JOURNAL_DONE);
    struct journal_head head = head_of(w->b);
    assert_int_equal(head.epoch, 1);
    assert_memory_equal(head.claim, first.claim, sizeof head.claim);
    assert_string_equal(head.url, "http://one:1");
    expect(claim(w->b, &other), JOURNAL_DEPOSED);
    expect(claim(w->b, &jump), JOURNAL_DEPOSED);
    char url[JOURNAL_URL_MAX + 1];
    memset(url, 'u', JOURNAL_URL_MAX);
    url[JOURNAL_URL_MAX] = '\0';
    expect(w->b->driver->claim(w->b, &second, url, &last_err), JOURNAL_DONE);
    head = head_of(w->a);
    assert_int_equal(head.epoch, 2);
    assert_string_equal(head.url, url);
    expect(claim(w->a, &first), JOURNAL_DEPOSED);
}

static void a_repeated_claim_is_found(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(claim(w->a, &m), JOURNAL_FOUND);
    world_reopen(w);
    expect(claim(w->a, &m), JOURNAL_FOUND);
    assert_int_equal(head_of(w->a).epoch, 1);
}

/* Of lengths between nothing and the most, with every byte there is. */
static void entries_come_back_as_they_were(void **state)
{
    static const size_t lens[] = {0, 1, 2, 255, 256, 2000, 8191, 65536, JOURNAL_CHUNK_MAX};
    const int n = sizeof lens / sizeof *lens;
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 0); /* NUL bytes in the claim, too */
    struct journal_page page = {0};
    uint8_t *data = hf_alloc(JOURNAL_CHUNK_MAX);
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (size_t i = 0; i < JOURNAL_CHUNK_MAX; i++)
        data[i] = (uint8_t)(i + i / 251);
    for (int i = 0; i < n; i++)
        expect(append_bytes(w->a, &m, i + 1, data, lens[i]), JOURNAL_DONE);
    world_reopen(w);
    expect(w->b->driver->read(w->b, 0, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(page.entries.v[i].index, i + 1);
        assert_int_equal(page.entries.v[i].len, lens[i]);
        if (lens[i])
            assert_memory_equal(page.bytes.data + page.entries.v[i].at, data, lens[i]);
    }
    journal_page_close(&page);
    free(data);
}

static void an_entry_follows_the_last_one(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    uint8_t id[JOURNAL_ID_SIZE];
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    expect(append(w->a, &m, 3, "three"), JOURNAL_DAMAGED);
    assert_true(strlen(last_err.msg) > 8);
    expect(append(w->a, &m, 2, "two"), JOURNAL_DONE);
    id_make(id, 2, 'x');
    expect(w->a->driver->append(w->a, &m, 2, id, "other", 5, &last_err), JOURNAL_DEPOSED);
    assert_entries(w->b, 0, (const char *const[]){"one", "two", NULL});
    assert_entries(w->b, 1, (const char *const[]){"two", NULL});
    assert_entries(w->b, 2, (const char *const[]){NULL});
}

static void a_repeated_append_is_found(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_FOUND);
    expect(append(w->a, &m, 2, "two"), JOURNAL_DONE);
    world_reopen(w);
    expect(append(w->a, &m, 1, "one"), JOURNAL_FOUND);
    expect(append(w->a, &m, 2, "two"), JOURNAL_FOUND);
    assert_entries(w->b, 0, (const char *const[]){"one", "two", NULL});
}

/* Reads from the first entry to the last, page by page, and counts the pages. */
static int read_all(struct journal *j, int64_t last, size_t entry_bytes)
{
    struct journal_page page = {0};
    int64_t at = 0;
    int pages = 0;
    for (; at < last; pages++) {
        expect(j->driver->read(j, at, &page, &last_err), JOURNAL_DONE);
        assert_true(page.entries.n > 0);
        assert_true(page.bytes.len <= JOURNAL_PAGE_MAX + entry_bytes);
        assert_int_equal(page.entries.v[0].index, at + 1);
        assert_int_equal(page.bytes.len, page.entries.n * entry_bytes);
        assert_int_equal(page.head.last, last);
        at += (int64_t)page.entries.n;
        assert_int_equal(page.entries.v[page.entries.n - 1].index, at);
    }
    assert_int_equal(at, last);
    journal_page_close(&page);
    return pages;
}

static void a_page_has_a_size(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    char *data = hf_alloc(JOURNAL_CHUNK_MAX);
    memset(data, '.', JOURNAL_CHUNK_MAX);
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int i = 1; i <= 11; i++)
        expect(append_bytes(w->a, &m, i, data, JOURNAL_CHUNK_MAX), JOURNAL_DONE);
    int pages = read_all(w->b, 11, JOURNAL_CHUNK_MAX);
    assert_in_range(pages, 3, 11);
    free(data);
}

/* The long log: two snapshots, and all before the first is trimmed. */
static void a_long_log_is_read_and_trimmed(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    const char *wanted = getenv("HF_ENTRIES");
    const int n = wanted ? (int)strtol(wanted, NULL, 10) : w->engine->n_entries;
    struct journal_page page = {0};
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int i = 1; i <= n; i++)
        expect(append(w->a, &m, i, "entry"), JOURNAL_DONE);
    (void)read_all(w->b, n, 5);
    take_snapshot(w->a, &m, n - 10, "older");
    take_snapshot(w->a, &m, n - 5, "newer");
    expect(trim(w->a, &m), JOURNAL_DONE);
    expect(w->b->driver->read(w->b, 0, &page, &last_err), JOURNAL_TRIMMED);
    assert_int_equal(page.entries.n, 0);
    expect(w->b->driver->read(w->b, n - 11, &page, &last_err), JOURNAL_TRIMMED);
    expect(w->b->driver->read(w->b, n - 10, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, 10);
    journal_page_close(&page);
    expect(append(w->a, &m, n + 1, "entry"), JOURNAL_DONE);
}

static void report(struct journal *j, const char *url, int64_t index, const char *gone,
                   struct journal_server *ret, size_t *ret_n)
{
    static int64_t beat;
    struct journal_server self = {.index = index, .beat = ++beat};
    (void)snprintf(self.url, sizeof self.url, "%s", url);
    expect(j->driver->report(j, &self, gone, ret, JOURNAL_SERVERS_MAX, ret_n, &last_err),
           JOURNAL_DONE);
}

static const struct journal_server *find(const struct journal_server *servers, size_t n,
                                         const char *url)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(servers[i].url, url) == 0)
            return &servers[i];
    return NULL;
}

static void reports_are_listed_until_they_are_deleted(void **state)
{
    struct world *w = *state;
    struct journal_server servers[JOURNAL_SERVERS_MAX];
    size_t n = 0;
    report(w->a, "http://one", 5, NULL, servers, &n);
    assert_int_equal(n, 1);
    report(w->b, "http://two/'\"%", INT64_MAX, NULL, servers, &n);
    assert_int_equal(n, 2);
    assert_int_equal(find(servers, n, "http://one")->index, 5);
    int64_t beat = find(servers, n, "http://one")->beat;
    report(w->a, "http://one", 6, NULL, servers, &n);
    assert_int_equal(n, 2);
    assert_int_equal(find(servers, n, "http://one")->index, 6);
    assert_true(find(servers, n, "http://one")->beat != beat);
    assert_int_equal(find(servers, n, "http://two/'\"%")->index, INT64_MAX);
    report(w->a, "http://one", 7, "http://two/'\"%", servers, &n);
    assert_int_equal(n, 1);
    assert_non_null(find(servers, n, "http://one"));
    report(w->a, "http://one", 7, "http://nobody", servers, &n);
    assert_int_equal(n, 1);
}

static void no_more_reports_are_listed_than_wanted(void **state)
{
    struct world *w = *state;
    struct journal_server servers[JOURNAL_SERVERS_MAX], few[3] = {0};
    char url[64];
    size_t n = 0;
    for (int i = 0; i < JOURNAL_SERVERS_MAX + 6; i++) {
        (void)snprintf(url, sizeof url, "http://%d", i);
        report(w->a, url, i, NULL, servers, &n);
    }
    assert_int_equal(n, JOURNAL_SERVERS_MAX);
    struct journal_server self = {.url = "http://0"};
    expect(w->a->driver->report(w->a, &self, NULL, few, 2, &n, &last_err), JOURNAL_DONE);
    assert_int_equal(n, 2);
    assert_string_equal(few[2].url, "");
}

static void drivers_are_found_by_their_scheme(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", "sqlite", "nonsense://x", "SQLITE:x", "://", ":"};
    assert_ptr_equal(journal_driver_for("sqlite:x"), &journal_sqlite);
    assert_ptr_equal(journal_driver_for("postgres://x"), &journal_postgres);
    assert_ptr_equal(journal_driver_for("postgresql://x"), &journal_postgres);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(journal_driver_for(unknown[i]));
}

/* A call as data does what the call does. */
static void a_call_as_data_is_the_same(void **state)
{
    struct world *w = *state;
    static struct journal_call c;
    c = (struct journal_call){.mandate = mandate(1, 'A'), .url = "http://a", .op = JOURNAL_CLAIM};
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    c.op = JOURNAL_APPEND;
    c.index = 1;
    c.data = "one";
    c.len = 3;
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_FOUND);
    c.op = JOURNAL_PUT_CHUNK;
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    c.op = JOURNAL_POINT;
    c.n_chunks = 1;
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    for (int i = 0; i < 2; i++) { /* what was there before is replaced */
        c.op = JOURNAL_LOAD;
        journal_run(w->a, &c);
        expect(c.result, JOURNAL_DONE);
        assert_int_equal(c.snapshot_index, 1);
        assert_int_equal(c.snapshot.len, 3);
        c.op = JOURNAL_READ;
        c.index = 0;
        journal_run(w->a, &c);
        expect(c.result, JOURNAL_DONE);
        assert_int_equal(c.page.entries.n, 1);
        assert_int_equal(c.page.bytes.len, 3);
    }
    c.op = JOURNAL_TRIM;
    c.more = true;
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    assert_false(c.more);
    c.op = JOURNAL_REPORT;
    (void)snprintf(c.self.url, sizeof c.self.url, "http://self");
    journal_run(w->a, &c);
    expect(c.result, JOURNAL_DONE);
    assert_int_equal(c.n_servers, 1);
    journal_call_close(&c);
}

const struct CMUnitTest entries_claims[] = {
    CLAIM(a_new_journal_is_empty),
    CLAIM(a_claim_raises_the_epoch_by_one),
    CLAIM(a_repeated_claim_is_found),
    CLAIM(entries_come_back_as_they_were),
    CLAIM(an_entry_follows_the_last_one),
    CLAIM(a_repeated_append_is_found),
    CLAIM(a_page_has_a_size),
    CLAIM(a_long_log_is_read_and_trimmed),
    CLAIM(reports_are_listed_until_they_are_deleted),
    CLAIM(no_more_reports_are_listed_than_wanted),
    CLAIM(drivers_are_found_by_their_scheme),
    CLAIM(a_call_as_data_is_the_same),
    CLAIMS_END,
};
