/* The rules of holds against a model that shares no code with them: arrays, linear scans, one
 * command after another.  Random streams of commands in random batches, some of which fail; both
 * must give the same answers and the same seat map, and the invariants hold after every batch.
 *
 * HF_SEED repeats one stream, HF_STEPS lengthens each. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define EVENTS 2
#define SEATS 24
#define PRICE 2500
#define HOLDS_MAX 1024
#define KEYS_MAX 40
#define EPISODE 600 /* commands, then a new hall: the old one is sold out */
#define BATCH_MAX 9

/* ---- the model ---- */

enum life { LIVE, EXPIRED, RELEASED, SOLD };

struct m_hold {
    int event;
    enum life life;
    int64_t first_fence, fence, expires_at, cap;
    int n_seats;
    uint32_t seats[4];
    int sold_in_batch;
};
struct m_key {
    bool used;
    char request[96], answer[96];
    int http;
    int64_t at;
    int granted_in_batch;
};
struct model {
    int64_t now;
    int batch;
    int owner[EVENTS][SEATS]; /* 1 + index of a hold */
    int64_t fence[EVENTS];
    int n_holds;
    struct m_hold holds[HOLDS_MAX];
    struct m_key keys[KEYS_MAX];
};

/* One command, for both sides. */
struct op {
    enum command_kind kind;
    int event, n_seats, hold, key; /* key -1: none */
    uint32_t seats[4];
    int64_t ttl_ms, fence;
    bool rescue, forged;
    char request[96];
};

struct answer {
    bool deferred, replayed;
    enum hf_status status;
    int http, n_taken;
    uint32_t taken[4];
    char body[96]; /* of a success */
};

static void m_expire(struct model *m)
{
    for (int h = 0; h < m->n_holds; h++) {
        if (m->holds[h].life != LIVE || m->holds[h].expires_at > m->now)
            continue;
        m->holds[h].life = EXPIRED;
        for (int i = 0; i < m->holds[h].n_seats; i++)
            m->owner[m->holds[h].event][m->holds[h].seats[i]] = 0;
    }
}

static long long m_key_of(const struct m_hold *h)
{
    return (long long)(h->event + 1) * ((long long)1 << 40) + (long long)h->first_fence;
}

static void say_hold(const struct m_hold *h, enum hf_status status, struct answer *a)
{
    a->status = status;
    snprintf(a->body, sizeof a->body, "%s %lld %lld %lld", hf_status_code(status), m_key_of(h),
             (long long)h->fence, (long long)h->expires_at);
}

static void say_booking(const struct m_hold *h, enum hf_status status, struct answer *a)
{
    a->status = status;
    snprintf(a->body, sizeof a->body, "%s %lld %lld %lld", hf_status_code(status), m_key_of(h),
             (long long)h->fence, (long long)h->n_seats * PRICE);
}

static void m_create(struct model *m, const struct op *op, struct answer *a)
{
    for (int i = 0; i < op->n_seats; i++)
        if (m->owner[op->event][op->seats[i]])
            a->taken[a->n_taken++] = op->seats[i];
    if (a->n_taken) {
        a->status = HF_SEAT_TAKEN;
        return;
    }
    struct m_hold *h = &m->holds[m->n_holds++];
    int64_t ttl_ms = op->ttl_ms ? op->ttl_ms : DEF_TTL_MS;
    *h = (struct m_hold){.event = op->event, .life = LIVE, .n_seats = op->n_seats};
    h->first_fence = h->fence = ++m->fence[op->event];
    h->cap = m->now + DEF_MAX_MS;
    h->expires_at = m->now + ttl_ms > h->cap ? h->cap : m->now + ttl_ms;
    for (int i = 0; i < op->n_seats; i++) {
        h->seats[i] = op->seats[i];
        m->owner[op->event][op->seats[i]] = m->n_holds;
    }
    say_hold(h, HF_CREATED, a);
}

static enum hf_status dead(enum life life)
{
    return life == EXPIRED    ? HF_HOLD_EXPIRED
           : life == RELEASED ? HF_HOLD_RELEASED
                              : HF_HOLD_CONFIRMED;
}

static void m_renew(struct model *m, const struct op *op, struct m_hold *h, struct answer *a)
{
    if (h->life != LIVE) {
        a->status = dead(h->life);
        return;
    }
    int64_t until = m->now + (op->ttl_ms ? op->ttl_ms : DEF_TTL_MS);
    until = until > h->cap ? h->cap : until;
    if (until <= h->expires_at) {
        a->status = HF_RENEWAL_CAP;
        return;
    }
    h->expires_at = until;
    say_hold(h, HF_OK, a);
}

static void m_release(struct model *m, struct m_hold *h, struct answer *a)
{
    if (h->life == EXPIRED || h->life == SOLD) {
        a->status = dead(h->life);
        return;
    }
    if (h->life == LIVE)
        for (int i = 0; i < h->n_seats; i++)
            m->owner[h->event][h->seats[i]] = 0;
    h->life = RELEASED;
    a->status = HF_NO_CONTENT;
    snprintf(a->body, sizeof a->body, "%s", hf_status_code(HF_NO_CONTENT));
}

static void m_confirm(struct model *m, const struct op *op, struct m_hold *h, struct answer *a)
{
    if (h->life == RELEASED || (h->life == EXPIRED && !op->rescue)) {
        a->status = dead(h->life);
        return;
    }
    if (h->life == SOLD && (op->fence == h->fence || op->fence == h->first_fence)) {
        say_booking(h, HF_OK, a);
        return;
    }
    if (op->fence != h->fence) {
        a->status = HF_STALE_FENCE;
        return;
    }
    if (h->life == EXPIRED) {
        for (int i = 0; i < h->n_seats; i++)
            if (m->owner[h->event][h->seats[i]]) {
                a->status = HF_HOLD_EXPIRED;
                return;
            }
        h->fence = ++m->fence[h->event];
    }
    h->life = SOLD;
    h->sold_in_batch = m->batch;
    for (int i = 0; i < h->n_seats; i++)
        m->owner[h->event][h->seats[i]] = (int)(h - m->holds) + 1;
    say_booking(h, HF_CREATED, a);
}

static void m_judge(struct model *m, const struct op *op, struct answer *a)
{
    struct m_hold *h = &m->holds[op->hold];
    if (op->kind == CMD_HOLD_CREATE) {
        m_create(m, op, a);
        return;
    }
    if (op->forged) {
        a->status = HF_NO_SUCH_HOLD;
        return;
    }
    if (h->life == SOLD && h->sold_in_batch == m->batch) {
        a->deferred = true;
        return;
    }
    if (op->kind == CMD_HOLD_RENEW)
        m_renew(m, op, h, a);
    else if (op->kind == CMD_HOLD_RELEASE)
        m_release(m, h, a);
    else
        m_confirm(m, op, h, a);
}

static void m_answer(struct model *m, const struct op *op, struct answer *a)
{
    struct m_key *key = op->key >= 0 ? &m->keys[op->key] : NULL;
    *a = (struct answer){0};
    m_expire(m);
    if (key && key->used && key->granted_in_batch == m->batch) {
        a->deferred = true;
        return;
    }
    if (key && key->used && m->now - key->at < 24 * HOUR_MS) {
        a->replayed = strcmp(key->request, op->request) == 0;
        a->status = a->replayed ? HF_OK : HF_KEY_MISMATCH;
        a->http = key->http;
        snprintf(a->body, sizeof a->body, "%s", a->replayed ? key->answer : "");
        return;
    }
    m_judge(m, op, a);
    a->http = hf_status_http(a->status);
    if (!key || a->deferred || a->http >= 300)
        return;
    *key =
        (struct m_key){.used = true, .http = a->http, .at = m->now, .granted_in_batch = m->batch};
    snprintf(key->request, sizeof key->request, "%s", op->request);
    snprintf(key->answer, sizeof key->answer, "%s", a->body);
}

/* ---- the stream ---- */

static struct {
    struct random random;
    struct paper paper;
    struct event *events[EVENTS];
    struct model model, saved;
    struct id ids[HOLDS_MAX]; /* of the model's holds, as the real side named them */
    struct op recent[32];     /* keyed ones, to repeat */
    size_t n_recent;
    struct op waiting[64]; /* deferred: first in the next batch */
    int n_waiting;
    uint64_t seed;
    size_t step;
    bool finished;
    unsigned met[HF_STATUS_COUNT], deferred, replayed, rescued, failed;
} w;

static int below(int n) { return (int)random_below(&w.random, (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }

static void pick_seats(struct op *op)
{
    op->n_seats = 1 + below(4);
    int start = below(SEATS);
    for (int i = 0; i < op->n_seats; i++) /* distinct, in no order */
        op->seats[i] = (uint32_t)((start + i * 5) % SEATS);
}

static void pick_hold(struct op *op)
{
    int n = w.model.n_holds, back = chance(85) ? below(n < 12 ? n : 12) : below(n);
    op->hold = n - 1 - back;
    const struct m_hold *h = &w.model.holds[op->hold];
    op->event = h->event;
    op->forged = chance(3);
    op->fence = chance(88) ? h->fence : chance(50) ? h->first_fence : h->fence + 1 - below(3);
}

static void pick_kind(struct op *op)
{
    int roll = below(100);
    op->kind = roll < 45   ? CMD_HOLD_CREATE
               : roll < 62 ? CMD_HOLD_RENEW
               : roll < 74 ? CMD_HOLD_RELEASE
                           : CMD_HOLD_CONFIRM;
    if (!w.model.n_holds)
        op->kind = CMD_HOLD_CREATE;
    op->event = below(EVENTS);
    op->ttl_ms = chance(40) ? 0 : 500 + below(30000);
    if (op->kind == CMD_HOLD_CREATE)
        pick_seats(op);
    else
        pick_hold(op);
    op->rescue = op->kind == CMD_HOLD_CONFIRM && chance(55);
    /* Sell slowly, or the hall is empty of seats before the episode is over. */
    if (op->kind == CMD_HOLD_CONFIRM && chance(55))
        op->fence++;
}

static struct op pick(void)
{
    struct op op = {.key = -1};
    if (w.n_recent && chance(15))
        return w.recent[random_below(&w.random, w.n_recent < 32 ? w.n_recent : 32)];
    pick_kind(&op);
    snprintf(op.request, sizeof op.request, "%d %d %d %lld %lld %d %u", op.kind, op.event, op.hold,
             (long long)op.ttl_ms, (long long)op.fence, op.rescue, op.seats[0]);
    if (chance(50)) {
        op.key = below(KEYS_MAX);
        w.recent[w.n_recent++ % 32] = op;
    }
    return op;
}

static void ask_of(const struct op *op, struct ask *a)
{
    struct event *e = w.events[op->event];
    struct id id = w.ids[op->hold];
    id.secret[3] ^= op->forged;
    if (op->kind == CMD_HOLD_CREATE)
        ask_create_n(a, e, op->seats, (uint32_t)op->n_seats);
    else if (op->kind == CMD_HOLD_RENEW)
        ask_renew(a, e, &id, op->ttl_ms);
    else if (op->kind == CMD_HOLD_RELEASE)
        ask_release(a, e, &id);
    else
        ask_confirm(a, e, &id, op->fence, op->rescue);
    a->c.ttl_ms = op->ttl_ms;
    char key[16];
    snprintf(key, sizeof key, "key %d", op->key);
    if (op->key >= 0)
        ask_key(a, key, op->request);
}

/* ---- comparing ---- */

static void compare(const struct op *op, const struct answer *want, enum decided decided,
                    struct ask *got)
{
    assert_int_equal(decided, want->deferred ? DEFERRED : DECIDED);
    if (want->deferred) {
        w.deferred++;
        return;
    }
    assert_string_equal(hf_status_code(got->c.status), hf_status_code(want->status));
    assert_int_equal(got->c.replayed, want->replayed);
    w.met[want->status]++;
    w.replayed += want->replayed;
    if (want->status == HF_SEAT_TAKEN) {
        assert_int_equal(got->c.n_taken, want->n_taken);
        assert_memory_equal(got->taken, want->taken, (size_t)want->n_taken * sizeof(uint32_t));
    }
    if (hf_status_http(want->status) >= 300)
        return;
    if (!got->c.has_key) {
        paper_render(&got->c, &got->c.body);
        got->c.http_status = hf_status_http(got->c.status);
    }
    assert_int_equal(got->c.http_status, want->http);
    buf_char(&got->c.body, '\0');
    assert_string_equal(got->c.body.data, want->body);
    if (op->kind == CMD_HOLD_CREATE && !want->replayed)
        w.ids[w.model.n_holds - 1] = got->c.hold.id;
    if (op->kind == CMD_HOLD_CONFIRM && want->status == HF_CREATED && !want->replayed)
        w.rescued += got->c.booking.fence != HOLD_FIRST_FENCE(got->c.booking.id.key);
}

/* A seat held by a due hold that nobody has met yet is free for all that matters. */
static void compare_seats(void)
{
    m_expire(&w.model);
    for (int e = 0; e < EVENTS; e++)
        for (uint32_t s = 0; s < SEATS; s++) {
            int owner = w.model.owner[e][s];
            const struct seat *seat = &w.events[e]->seats[s];
            enum seat_status status = seat->status;
            int64_t hold = seat->hold;
            if (status == SEAT_HELD && view_hold(w.paper.view, hold)->expires_at <= w.paper.now) {
                status = SEAT_AVAILABLE;
                hold = 0;
            }
            const struct m_hold *h = owner ? &w.model.holds[owner - 1] : NULL;
            assert_int_equal(status, !h                ? SEAT_AVAILABLE
                                     : h->life == SOLD ? SEAT_BOOKED
                                                       : SEAT_HELD);
            assert_int_equal(hold, h ? m_key_of(h) : 0);
        }
}

/* I4, from the rows alone: what was sold without a rescue was sold before its expiry. */
static void check_sales(void)
{
    for (size_t i = 0; i < w.paper.bookings.n; i++) {
        const struct booking_row *b = &w.paper.bookings.v[i];
        if (b->fence == HOLD_FIRST_FENCE(b->id.key))
            assert_true(b->created_at < paper_hold(&w.paper, b->id.key)->row.expires_at);
    }
}

/* ---- batches ---- */

static void advance(void)
{
    int64_t ms = chance(30) ? 0 : below(2500);
    if (chance(4))
        ms = below(40000);
    if (chance(1))
        ms = 24 * HOUR_MS - 1 + below(3);
    w.paper.now += ms;
    w.model.now = w.paper.now;
}

static void run_batch(size_t *left)
{
    static struct ask asks[BATCH_MAX + 64];
    struct op ops[BATCH_MAX + 64];
    int n = w.n_waiting, fresh = 1 + below(BATCH_MAX);
    bool fail = chance(12);
    struct buf before = {0}, after = {0};
    memcpy(ops, w.waiting, (size_t)n * sizeof *ops);
    w.n_waiting = 0;
    advance();
    w.model.batch++;
    w.paper.expire_max = chance(50) ? 500 : (size_t)below(3);
    if (fail) {
        w.saved = w.model;
        paper_dump(&w.paper, &before);
    }
    paper_begin(&w.paper);
    for (int i = 0; i < n + fresh; i++, w.step++) {
        struct answer want;
        if (i >= n) { /* chosen now, so that it may name what this batch has just made */
            ops[i] = pick();
            *left -= *left > 0;
            /* but not by an id that nobody has been told yet */
            if (ops[i].kind != CMD_HOLD_CREATE && !paper_hold(&w.paper, w.ids[ops[i].hold].key))
                ops[i].forged = true;
        }
        ask_of(&ops[i], &asks[i]);
        m_answer(&w.model, &ops[i], &want);
        compare(&ops[i], &want, paper_decide(&w.paper, &asks[i]), &asks[i]);
        if (want.deferred && !fail)
            w.waiting[w.n_waiting++] = ops[i];
    }
    if (fail) {
        paper_fail(&w.paper);
        paper_dump(&w.paper, &after);
        assert_string_equal(before.data, after.data);
        int64_t now = w.model.now;
        int batch = w.model.batch;
        w.model = w.saved;
        w.model.now = now;
        w.model.batch = batch;
        w.n_recent = 0; /* they may name holds that never were */
        w.failed++;
    } else {
        paper_commit(&w.paper);
    }
    for (int i = 0; i < n + fresh; i++)
        ask_close(&asks[i]);
    buf_close(&before);
    buf_close(&after);
    paper_check(&w.paper);
    check_sales();
    compare_seats();
}

static void run_episode(size_t steps)
{
    paper_init(&w.paper, w.seed);
    for (int e = 0; e < EVENTS; e++)
        w.events[e] = paper_event(&w.paper, def_hall(2, SEATS / 2));
    memset(&w.model, 0, sizeof w.model);
    w.model.now = w.paper.now;
    w.n_recent = 0;
    w.n_waiting = 0;
    for (size_t left = steps; left > 0 || w.n_waiting;)
        run_batch(&left);
    /* Long after, nothing is held and the log says so too. */
    w.paper.now = w.model.now += HOUR_MS;
    w.paper.expire_max = 500;
    paper_begin(&w.paper);
    paper_commit(&w.paper);
    paper_check(&w.paper);
    assert_int_equal(view_holds_len(w.paper.view), 0);
    compare_seats();
    paper_close(&w.paper);
}

static void run_seed(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.seed = seed;
    random_init_seeded(&w.random, seed);
    for (size_t left = test_steps(6000); left > 0;) {
        size_t steps = left < EPISODE ? left : EPISODE;
        run_episode(steps);
        left -= steps;
    }
    w.finished = true;
}

static void decide_and_the_model_agree(void **state)
{
    uint64_t usual = (uint64_t)(uintptr_t)*state;
    run_seed(test_seed(usual));
    if (test_seed(usual) != usual)
        return;
    /* A stream that never met these would prove little. */
    static const enum hf_status all[] = {
        HF_OK,           HF_CREATED,       HF_NO_CONTENT,   HF_SEAT_TAKEN,
        HF_HOLD_EXPIRED, HF_HOLD_RELEASED, HF_STALE_FENCE,  HF_HOLD_CONFIRMED,
        HF_RENEWAL_CAP,  HF_NO_SUCH_HOLD,  HF_KEY_MISMATCH,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!w.met[all[i]])
            fail_msg("no command was answered %s", hf_status_code(all[i]));
    assert_true(w.deferred > 5 && w.replayed > 50 && w.rescued > 5 && w.failed > 20);
}

static int tell_seed(void **state)
{
    (void)state;
    if (!w.finished)
        print_error("HF_SEED=%llu repeats it; it failed at step %zu\n", (unsigned long long)w.seed,
                    w.step);
    return 0;
}

#define seeded(number)                                                                             \
    {                                                                                              \
        "decide_and_the_model_agree_from_seed_" #number, decide_and_the_model_agree, NULL,         \
            tell_seed, (void *)(uintptr_t)number                                                   \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        seeded(1), seeded(20261115), seeded(42), seeded(77), seeded(1000003),
    };
    return cmocka_run_group_tests_name("decide_model", tests, NULL, NULL);
}
