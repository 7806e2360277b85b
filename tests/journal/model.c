/* Random calls of two servers, of which one or both believe to be the master, on the engine and on
 * the simulated journal, which is the model: every answer is the same.  HF_SEED and HF_STEPS repeat
 * and prolong it. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_journal.h"

#define SERVERS 2
#define CHUNKS 3

struct server {
    struct journal *j;
    struct journal_mandate m;
};

struct run {
    struct random random;
    struct server servers[SERVERS];
    struct sim_journal *sim;
    struct journal *model;
    struct journal_call real, expected;
    char data[64];
    char url[32], gone[32];
};

static int64_t below(struct run *r, int64_t bound)
{
    return (int64_t)random_below(&r->random, (uint64_t)bound);
}

/* An index near the end of the log, at least 1. */
static int64_t near(struct run *r, const struct journal_head *head)
{
    int64_t index = head->last + 2 - below(r, 12);
    return index > 1 ? index : 1;
}

static void choose_claim(struct run *r, struct server *s, const struct journal_head *head,
                         struct journal_call *c)
{
    c->op = JOURNAL_CLAIM;
    c->url = r->url;
    if (below(r, 4)) { /* else it repeats its last one */
        c->mandate.epoch = head->epoch + 1 - below(r, 4) / 3;
        random_bytes(&r->random, c->mandate.claim, sizeof c->mandate.claim);
        s->m = c->mandate;
    }
}

/* Mostly the next index; ids of few kinds, so that some are found. */
static void choose_append(struct run *r, const struct journal_head *head, struct journal_call *c)
{
    c->op = JOURNAL_APPEND;
    c->index = below(r, 4) ? head->last + 1 : near(r, head);
    id_make(c->id, c->index, (uint8_t)below(r, 2));
    c->data = r->data;
    c->len = (size_t)below(r, sizeof r->data);
}

/* Chunks are those of snapshots to come; the text of one says what it is. */
static void choose_chunk(struct run *r, const struct journal_head *head, struct journal_call *c)
{
    c->op = JOURNAL_PUT_CHUNK;
    c->index = head->snapshot + 1 + below(r, 4);
    c->no = below(r, CHUNKS);
    c->len = (size_t)snprintf(r->data, sizeof r->data, "<%lld.%lld>", (long long)c->index,
                              (long long)c->no);
    c->data = r->data;
}

static void choose_report(struct run *r, struct journal_call *c)
{
    c->op = JOURNAL_REPORT;
    (void)snprintf(c->self.url, sizeof c->self.url, "http://%lld", (long long)below(r, 5));
    c->self.index = below(r, 1000);
    c->self.beat = below(r, 1000);
    (void)snprintf(r->gone, sizeof r->gone, "http://%lld", (long long)below(r, 5));
    c->gone = below(r, 3) ? NULL : r->gone;
}

static void choose(struct run *r, struct server *s, struct journal_call *c)
{
    struct journal_head head;
    sim_journal_head(r->sim, &head);
    c->mandate = s->m;
    random_bytes(&r->random, r->data, sizeof r->data);
    (void)snprintf(r->url, sizeof r->url, "http://%lld", (long long)below(r, 1000));
    switch (below(r, 20)) {
    case 0:
    case 1:
        choose_claim(r, s, &head, c);
        return;
    case 2:
    case 3:
    case 4:
        c->op = JOURNAL_READ;
        c->index = below(r, 2) ? near(r, &head) - 1 : below(r, head.last + 1);
        return;
    case 5:
    case 6:
    case 7:
        choose_chunk(r, &head, c);
        return;
    case 8:
        c->op = JOURNAL_POINT;
        c->index = head.snapshot + below(r, 4);
        c->n_chunks = below(r, CHUNKS + 1);
        return;
    case 9:
        c->op = JOURNAL_TRIM;
        return;
    case 10:
        c->op = JOURNAL_LOAD;
        return;
    case 11:
        choose_report(r, c);
        return;
    default:
        choose_append(r, &head, c);
    }
}

/* The driver's page may end earlier than the model's: pages are bounded in more ways than one. */
static bool same_page(const struct journal_page *real, const struct journal_page *expected)
{
    const struct journal_head *a = &real->head, *b = &expected->head;
    const size_t n = real->entries.n, len = real->bytes.len;
    if (a->epoch != b->epoch || a->last != b->last || a->snapshot != b->snapshot ||
        strcmp(a->url, b->url) != 0 || memcmp(a->claim, b->claim, sizeof a->claim) != 0 ||
        n > expected->entries.n || (n == 0 && expected->entries.n > 0) || len > expected->bytes.len)
        return false;
    for (size_t i = 0; i < n; i++)
        if (real->entries.v[i].index != expected->entries.v[i].index ||
            real->entries.v[i].len != expected->entries.v[i].len)
            return false;
    return len == 0 || memcmp(real->bytes.data, expected->bytes.data, len) == 0;
}

static bool same_servers(const struct journal_call *a, const struct journal_call *b)
{
    size_t found = 0;
    for (size_t i = 0; i < a->n_servers; i++)
        for (size_t k = 0; k < b->n_servers; k++)
            found += strcmp(a->servers[i].url, b->servers[k].url) == 0 &&
                     a->servers[i].index == b->servers[k].index &&
                     a->servers[i].beat == b->servers[k].beat;
    return a->n_servers == b->n_servers && found == a->n_servers;
}

static bool same_answer(const struct journal_call *a, const struct journal_call *b)
{
    if (a->result != b->result)
        return false;
    switch (a->op) {
    case JOURNAL_READ:
        return same_page(&a->page, &b->page);
    case JOURNAL_LOAD:
        return a->result != JOURNAL_DONE ||
               (a->snapshot_index == b->snapshot_index && a->snapshot.len == b->snapshot.len &&
                (!a->snapshot.len ||
                 memcmp(a->snapshot.data, b->snapshot.data, a->snapshot.len) == 0));
    case JOURNAL_TRIM:
        return a->more == b->more;
    case JOURNAL_REPORT:
        return same_servers(a, b);
    default:
        return true;
    }
}

/* Copies what `choose` has filled in, and leaves the memory of the answers. */
static void ask(struct run *r, struct journal *j, const struct journal_call *what,
                struct journal_call *c)
{
    struct journal_page page = c->page;
    struct buf snapshot = c->snapshot;
    (void)r;
    *c = *what;
    c->page = page;
    c->snapshot = snapshot;
    journal_run(j, c);
}

static void every_answer_is_that_of_the_model(void **state)
{
    static struct run r;
    struct world *w = *state;
    const uint64_t seed = test_seed(1717);
    const size_t steps = test_steps(600);
    struct hf_err err = {0};
    int counts[JOURNAL_DAMAGED + 1] = {0};
    r = (struct run){.servers = {{.j = w->a}, {.j = w->b}}};
    random_init_seeded(&r.random, seed);
    r.sim = sim_journal_new("model", true);
    assert_int_equal(journal_sim.open("sim:model", &(struct journal_options){0}, &r.model, &err),
                     HF_OK);
    for (size_t i = 0; i < steps; i++) {
        static struct journal_call what;
        struct server *s = &r.servers[below(&r, SERVERS)];
        what = (struct journal_call){0};
        choose(&r, s, &what);
        ask(&r, r.model, &what, &r.expected);
        ask(&r, s->j, &what, &r.real);
        counts[r.real.result]++;
        if (!same_answer(&r.real, &r.expected))
            fail_msg("HF_SEED=%llu, step %zu, call %d at %lld: %s, not %s: %s",
                     (unsigned long long)seed, i, (int)what.op, (long long)what.index,
                     journal_result_name(r.real.result), journal_result_name(r.expected.result),
                     r.real.err.msg);
    }
    /* All kinds of answers came. */
    for (int i = 0; i <= JOURNAL_NONE && steps >= 600; i++)
        assert_true(counts[i] > 0);
    journal_call_close(&r.real);
    journal_call_close(&r.expected);
    journal_sim.close(r.model);
    sim_journal_free(r.sim);
}

const struct CMUnitTest model_claims[] = {
    CLAIM(every_answer_is_that_of_the_model),
    CLAIMS_END,
};
