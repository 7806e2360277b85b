/* The client of the lock service (lease/holdfast/client.h) on a clock of its own: the test is the
 * network and the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lease/holdfast/client.h"

#define TTL_MS 10000
#define SECOND INT64_C(1000000)

struct world {
    struct client *c;
    struct random random;
    int64_t now_us;
    unsigned n_changes;
};

static void note_change(void *context, struct client_lease *lease)
{
    (void)lease;
    ((struct world *)context)->n_changes++;
}

static void world_init(struct world *w, bool cache)
{
    memset(w, 0, sizeof *w);
    random_init_seeded(&w->random, 7);
    w->now_us = 1000 * SECOND;
    w->c = client_new(&(struct client_config){.ttl_ms = TTL_MS,
                                              .label = "web-1",
                                              .cache = cache,
                                              .random = &w->random,
                                              .on_change = note_change,
                                              .context = w});
}

static struct lease_request want(const char *name, uint8_t owner, enum hf_mode mode)
{
    struct lease_request r = {
        .key = name, .key_len = strlen(name), .ttl_ms = TTL_MS, .mode = mode, .slots = 1};
    r.owner[0] = owner;
    return r;
}

static enum client_result answer(struct world *w, const struct client_message *m,
                                 struct client_answer a)
{
    if (a.result == CLIENT_DONE && a.ttl_ms == 0)
        a.ttl_ms = TTL_MS;
    return client_answer(w->c, m, &a, w->now_us);
}

/* Asks, and opens the session if there is none; the message is the ACQUIRE. */
static enum client_step ask(struct world *w, const struct lease_request *r,
                            struct client_message *ret)
{
    struct client_lease *lease;
    enum client_step step = client_acquire(w->c, r, w->now_us, &lease, ret);
    if (step == CLIENT_SEND && ret->kind == CLIENT_OPEN) {
        assert_string_equal(ret->label, "web-1");
        assert_int_equal(
            answer(w, ret, (struct client_answer){.result = CLIENT_DONE, .session = "ses_1"}),
            CLIENT_DONE);
        step = client_acquire(w->c, r, w->now_us, &lease, ret);
    }
    return step;
}

static struct client_lease *lease_of(const struct world *w, const struct lease_request *r)
{
    return client_find(w->c, r->key, r->key_len, r->owner);
}

static bool is_held(struct world *w, const struct lease_request *r)
{
    struct client_lease *lease = lease_of(w, r);
    return lease && client_lease_is_held(lease, w->now_us);
}

/* The service grants it at once. */
static void grant(struct world *w, const struct lease_request *r, int64_t fence)
{
    struct client_message m;
    assert_int_equal(ask(w, r, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_ACQUIRE);
    assert_string_equal(m.session, "ses_1");
    assert_int_equal(answer(w, &m, (struct client_answer){.result = CLIENT_DONE, .fence = fence}),
                     CLIENT_DONE);
    assert_true(is_held(w, r));
    assert_int_equal(client_lease_fence(lease_of(w, r)), fence);
}

static void deadlines_count_from_before_the_request_minus_the_margin(void **state)
{
    (void)state;
    struct world w;
    struct client_message m, late;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    grant(&w, &r, 5);
    assert_int_equal(client_end_us(w.c), w.now_us + 1000 * TTL_MS);
    w.now_us += 1000 * TTL_MS - client_margin_us(TTL_MS) - 1;
    assert_true(is_held(&w, &r));
    w.now_us += 1;
    assert_false(is_held(&w, &r)); /* before the service can give it to anybody else */
    w.now_us -= 5 * SECOND;
    int64_t sent_us = w.now_us;
    assert_true(client_keep_alive(w.c, w.now_us, 0, &late));
    assert_false(client_keep_alive(w.c, w.now_us, SECOND, &m)); /* one serves all */
    assert_true(client_is_keeping(w.c, sent_us));
    w.now_us += 3 * SECOND; /* the answer takes long, and proves no more than the request */
    assert_int_equal(answer(&w, &late, (struct client_answer){.result = CLIENT_DONE}), CLIENT_DONE);
    assert_int_equal(client_end_us(w.c), sent_us + 1000 * TTL_MS);
    assert_true(client_renew(w.c, lease_of(&w, &r), w.now_us));
    assert_int_equal(client_lease_end_us(lease_of(&w, &r)), sent_us + 1000 * TTL_MS);
    client_free(w.c);
}

static void an_unanswered_keep_alive_proves_nothing(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    grant(&w, &r, 5);
    int64_t end_us = client_end_us(w.c);
    w.now_us += 9 * SECOND;
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_KEEPALIVE);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_NO_ANSWER}),
                     CLIENT_NO_ANSWER);
    assert_int_equal(client_end_us(w.c), end_us);
    assert_false(client_next(w.c, w.now_us, &m)); /* after a pause */
    w.now_us = client_due_us(w.c);
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_KEEPALIVE);
    w.now_us = end_us;
    assert_false(is_held(&w, &r));
    client_free(w.c);
}

static void a_session_that_is_not_proved_to_live_is_given_up(void **state)
{
    (void)state;
    struct world w;
    struct client_message m, late;
    struct client_lease *lease;
    struct lease_request a = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    grant(&w, &a, 5);
    assert_true(client_keep_alive(w.c, w.now_us, 0, &late));
    w.now_us = client_end_us(w.c);
    assert_int_equal(client_due_us(w.c), w.now_us);
    assert_true(client_next(w.c, w.now_us, &m)); /* in case that the service hears us */
    assert_int_equal(m.kind, CLIENT_CLOSE);
    assert_string_equal(m.session, "ses_1");
    assert_int_equal(w.n_changes, 1);
    assert_false(client_is_open(w.c));
    assert_int_equal(answer(&w, &late, (struct client_answer){.result = CLIENT_DONE}),
                     CLIENT_AGAIN);
    assert_false(client_is_open(w.c)); /* an answer that comes late changes nothing */
    assert_int_equal(client_acquire(w.c, &a, w.now_us, &lease, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_OPEN);
    client_free(w.c);
}

static void a_session_that_is_gone_takes_all_leases_with_it(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request a = want("a", 1, HF_EXCLUSIVE), b = want("b", 2, HF_EXCLUSIVE);
    world_init(&w, false);
    grant(&w, &a, 5);
    grant(&w, &b, 6);
    assert_true(client_keep_alive(w.c, w.now_us + 1, 0, &m));
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_GONE}), CLIENT_AGAIN);
    assert_int_equal(w.n_changes, 2);
    assert_false(is_held(&w, &a));
    assert_false(client_renew(w.c, lease_of(&w, &b), w.now_us));
    enum client_result result;
    assert_int_equal(client_release(w.c, lease_of(&w, &b), w.now_us, &m, &result), CLIENT_KNOWN);
    assert_int_equal(result, CLIENT_LOST);
    struct client_lease *lease;
    assert_int_equal(client_acquire(w.c, &a, w.now_us, &lease, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_OPEN); /* the next request begins anew */
    client_free(w.c);
}

static void a_lost_answer_is_followed_by_the_same_owner(void **state)
{
    (void)state;
    struct world w;
    struct client_message first, second;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &first), CLIENT_SEND);
    assert_int_equal(answer(&w, &first, (struct client_answer){.result = CLIENT_NO_ANSWER}),
                     CLIENT_NO_ANSWER);
    assert_false(is_held(&w, &r));
    assert_int_equal(ask(&w, &r, &second), CLIENT_SEND);
    assert_memory_equal(first.owner, second.owner, sizeof first.owner);
    assert_memory_equal(first.owner, r.owner, sizeof first.owner);
    assert_int_equal(answer(&w, &second, (struct client_answer){.result = CLIENT_DONE, .fence = 9}),
                     CLIENT_DONE);
    assert_true(is_held(&w, &r));
    client_free(w.c);
}

static void an_owner_that_has_ended_is_replaced(void **state)
{
    (void)state;
    struct world w;
    struct client_message m, again;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_LOST}), CLIENT_AGAIN);
    assert_int_equal(ask(&w, &r, &again), CLIENT_SEND);
    assert_memory_not_equal(again.owner, r.owner, sizeof again.owner);
    assert_int_equal(answer(&w, &again, (struct client_answer){.result = CLIENT_DONE, .fence = 9}),
                     CLIENT_DONE);
    assert_true(is_held(&w, &r));
    assert_ptr_equal(client_find_claim(w.c, "a", 1, again.owner), lease_of(&w, &r));
    client_free(w.c);
}

static void a_grant_for_a_caller_that_gave_up_is_released(void **state)
{
    (void)state;
    struct world w;
    struct client_message m, release, again;
    enum client_result result;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    assert_int_equal(client_release(w.c, lease_of(&w, &r), w.now_us, &release, &result),
                     CLIENT_SEND);
    assert_int_equal(answer(&w, &release, (struct client_answer){.result = CLIENT_NO_ANSWER}),
                     CLIENT_NO_ANSWER);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE, .fence = 9}),
                     CLIENT_LOST);
    assert_false(is_held(&w, &r));
    w.now_us = client_due_us(w.c);
    assert_true(client_next(w.c, w.now_us, &again));
    assert_int_equal(again.kind, CLIENT_RELEASE);
    assert_memory_equal(again.owner, m.owner, sizeof m.owner);
    assert_int_equal(client_n_claims(w.c), 1);
    assert_int_equal(answer(&w, &again, (struct client_answer){.result = CLIENT_DONE}),
                     CLIENT_DONE);
    assert_int_equal(client_n_claims(w.c), 0);
    client_free(w.c);
}

static void an_older_answer_changes_nothing(void **state)
{
    (void)state;
    struct world w;
    struct client_message first, second;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    r.queue = true;
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &first), CLIENT_SEND);
    assert_int_equal(ask(&w, &r, &second), CLIENT_SEND);
    assert_int_equal(
        answer(&w, &second, (struct client_answer){.result = CLIENT_TAKEN, .position = 1}),
        CLIENT_TAKEN);
    /* the first was granted and taken back before the second was answered */
    assert_int_equal(answer(&w, &first, (struct client_answer){.result = CLIENT_DONE, .fence = 9}),
                     CLIENT_TAKEN);
    assert_false(is_held(&w, &r));
    assert_int_equal(client_lease_position(lease_of(&w, &r)), 1);
    client_free(w.c);
}

static void a_lease_that_is_not_renewed_ends_and_is_released(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    grant(&w, &r, 5);
    w.now_us += 5 * SECOND;
    assert_true(client_keep_alive(w.c, w.now_us, 0, &m)); /* the session goes on for others */
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE}), CLIENT_DONE);
    w.now_us += 5 * SECOND;
    assert_false(is_held(&w, &r));
    assert_false(client_renew(w.c, lease_of(&w, &r), w.now_us)); /* a renewal never revives */
    bool is_released = false;
    while (client_next(w.c, w.now_us, &m))
        is_released |= m.kind == CLIENT_RELEASE;
    assert_true(is_released);
    assert_null(lease_of(&w, &r));
    client_free(w.c);
}

static void a_place_is_told_of_its_turn_and_asks(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    r.queue = true;
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    assert_int_equal(m.wait_ms, 1);
    assert_int_equal(m.claim_ms, WAITER_CLAIM_MS);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_TAKEN, .position = 3}),
                     CLIENT_TAKEN);
    assert_true(client_lease_is_waiting(lease_of(&w, &r)));
    client_event(w.c, CLIENT_EVENT_GRANTED, "a", 1, m.owner, 9, w.now_us);
    assert_int_equal(w.n_changes, 1);
    assert_false(is_held(&w, &r)); /* the service takes it back unless it asks */
    grant(&w, &r, 9);
    client_free(w.c);
}

static void a_grant_that_came_while_the_request_waited_is_claimed(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    r.queue = true;
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    struct client_answer a = {.result = CLIENT_DONE, .fence = 9, .is_unclaimed = true};
    assert_int_equal(answer(&w, &m, a), CLIENT_AGAIN);
    assert_true(client_lease_is_its_turn(lease_of(&w, &r)));
    assert_false(is_held(&w, &r)); /* the service takes it back unless it asks */
    uint8_t owner[LEASE_OWNER_SIZE];
    memcpy(owner, m.owner, sizeof owner);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    assert_memory_equal(m.owner, owner, sizeof owner);
    a = (struct client_answer){.result = CLIENT_TAKEN, .position = 2}; /* it was too late */
    assert_int_equal(answer(&w, &m, a), CLIENT_TAKEN);
    assert_false(client_lease_is_its_turn(lease_of(&w, &r)));
    grant(&w, &r, 11);
    client_free(w.c);
}

static void a_turn_that_is_told_before_the_answer_is_remembered(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    r.queue = true;
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND);
    client_event(w.c, CLIENT_EVENT_GRANTED, "a", 1, m.owner, 9, w.now_us);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_TAKEN, .position = 1}),
                     CLIENT_TAKEN);
    assert_true(client_lease_is_its_turn(lease_of(&w, &r)));
    assert_int_equal(ask(&w, &r, &m), CLIENT_SEND); /* it was too late */
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_TAKEN, .position = 2}),
                     CLIENT_TAKEN);
    assert_false(client_lease_is_its_turn(lease_of(&w, &r)));
    client_free(w.c);
}

static void a_lock_that_has_ended_is_lost_also_with_other_messages_under_way(void **state)
{
    (void)state;
    struct world w;
    struct client_message first, second, check;
    struct lease_request r = want("a", 1, HF_EXCLUSIVE);
    world_init(&w, false);
    assert_int_equal(ask(&w, &r, &first), CLIENT_SEND);
    assert_int_equal(ask(&w, &r, &second), CLIENT_SEND);
    assert_int_equal(answer(&w, &first, (struct client_answer){.result = CLIENT_DONE, .fence = 9}),
                     CLIENT_DONE);
    client_event(w.c, CLIENT_EVENT_CONNECTED, NULL, 0, NULL, 0, w.now_us);
    assert_true(client_next(w.c, w.now_us, &check));
    assert_int_equal(check.kind, CLIENT_ACQUIRE);
    assert_int_equal(answer(&w, &check, (struct client_answer){.result = CLIENT_LOST}),
                     CLIENT_LOST);
    assert_int_equal(w.n_changes, 1); /* the holder is told at once */
    assert_false(client_lease_is_granted(lease_of(&w, &r)));
    assert_false(client_next(w.c, w.now_us, &check)); /* there is nothing to release */
    (void)answer(&w, &second, (struct client_answer){.result = CLIENT_LOST});
    assert_int_equal(client_n_claims(w.c), 0);
    client_free(w.c);
}

/* A thread has given something up, and the service does not know yet. */
static void a_request_that_waits_is_sent_after_the_releases_of_its_thread(void **state)
{
    (void)state;
    struct world w;
    struct client_message release, again, m;
    struct client_lease *lease;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_EXCLUSIVE), b = want("b", 2, HF_EXCLUSIVE),
                         other = want("b", 3, HF_EXCLUSIVE);
    a.agent = b.agent = 7;
    other.agent = 9;
    b.queue = other.queue = true;
    world_init(&w, false);
    grant(&w, &a, 5);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &release, &result),
                     CLIENT_SEND);
    assert_int_equal(client_acquire(w.c, &b, w.now_us, &lease, &m), CLIENT_BUSY);
    assert_int_equal(ask(&w, &other, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_ACQUIRE); /* other threads do not wait for it */
    assert_int_equal(answer(&w, &release, (struct client_answer){.result = CLIENT_NO_ANSWER}),
                     CLIENT_NO_ANSWER);
    assert_int_equal(ask(&w, &b, &again), CLIENT_SEND);
    assert_int_equal(again.kind, CLIENT_RELEASE);
    assert_memory_equal(again.owner, a.owner, sizeof a.owner);
    assert_int_equal(answer(&w, &again, (struct client_answer){.result = CLIENT_LOST}),
                     CLIENT_LOST);
    assert_int_equal(ask(&w, &b, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_ACQUIRE);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DEADLOCK}),
                     CLIENT_DEADLOCK); /* nothing was under way: it is one */
    client_free(w.c);
}

static void a_deadlock_is_not_believed_while_a_release_of_the_thread_is_under_way(void **state)
{
    (void)state;
    struct world w;
    struct client_message ask_b, poll, release, m;
    struct client_lease *lease;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_EXCLUSIVE), b = want("b", 2, HF_EXCLUSIVE);
    a.agent = b.agent = 7;
    b.queue = true;
    world_init(&w, false);
    grant(&w, &a, 5);
    assert_int_equal(ask(&w, &b, &ask_b), CLIENT_SEND);
    assert_int_equal(
        answer(&w, &ask_b, (struct client_answer){.result = CLIENT_TAKEN, .position = 1}),
        CLIENT_TAKEN);
    assert_int_equal(ask(&w, &b, &poll), CLIENT_SEND);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &release, &result),
                     CLIENT_SEND);
    assert_int_equal(answer(&w, &poll, (struct client_answer){.result = CLIENT_DEADLOCK}),
                     CLIENT_AGAIN);
    assert_false(client_lease_is_waiting(lease_of(&w, &b)));
    assert_int_equal(client_acquire(w.c, &b, w.now_us, &lease, &m), CLIENT_BUSY);
    assert_int_equal(answer(&w, &release, (struct client_answer){.result = CLIENT_DONE}),
                     CLIENT_DONE);
    grant(&w, &b, 6);
    client_free(w.c);
}

/* ---- cached shared locks ---- */

static void readers_share_a_cached_lock_without_a_message(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_SHARED), b = want("a", 2, HF_SHARED);
    world_init(&w, true);
    grant(&w, &a, 5);
    assert_int_equal(ask(&w, &b, &m), CLIENT_KNOWN);
    assert_true(is_held(&w, &b));
    assert_int_equal(client_lease_fence(lease_of(&w, &b)), 5);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(client_release(w.c, lease_of(&w, i ? &b : &a), w.now_us, &m, &result),
                         CLIENT_KNOWN);
        assert_int_equal(result, CLIENT_DONE);
    }
    assert_int_equal(client_n_claims(w.c), 1); /* kept, and used again */
    assert_int_equal(ask(&w, &a, &m), CLIENT_KNOWN);
    assert_int_equal(client_counts(w.c).cache_hits, 2);
    assert_int_equal(client_counts(w.c).cache_misses, 1);
    client_free(w.c);
}

static void a_wanted_lock_is_granted_to_nobody_and_released_after_use(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_SHARED), b = want("a", 2, HF_SHARED);
    world_init(&w, true);
    grant(&w, &a, 5);
    client_event(w.c, CLIENT_EVENT_WANTED, "a", 1, NULL, 0, w.now_us);
    assert_true(client_next(w.c, w.now_us, &m)); /* it is in use */
    assert_int_equal(m.kind, CLIENT_ACQUIRE);
    assert_false(m.cache);
    assert_memory_equal(m.owner, a.owner, sizeof m.owner);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE, .fence = 5}),
                     CLIENT_DONE);
    assert_true(is_held(&w, &a));
    assert_int_equal(ask(&w, &b, &m), CLIENT_SEND); /* behind the writer, as everybody else */
    assert_int_equal(m.kind, CLIENT_ACQUIRE);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_TAKEN}), CLIENT_TAKEN);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &m, &result), CLIENT_KNOWN);
    assert_int_equal(result, CLIENT_DONE);
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_RELEASE);
    client_free(w.c);
}

static void the_service_is_told_that_a_lock_is_in_use_until_it_answers(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    struct lease_request a = want("a", 1, HF_SHARED);
    enum client_result lost[] = {CLIENT_NO_ANSWER, CLIENT_NOT_DONE};
    world_init(&w, true);
    grant(&w, &a, 5);
    client_event(w.c, CLIENT_EVENT_WANTED, "a", 1, NULL, 0, w.now_us);
    for (size_t i = 0; i < 2; i++) {
        w.now_us = client_due_us(w.c);
        assert_true(client_next(w.c, w.now_us, &m));
        assert_int_equal(m.kind, CLIENT_ACQUIRE);
        assert_false(m.cache);
        assert_int_equal(answer(&w, &m, (struct client_answer){.result = lost[i]}), lost[i]);
        assert_false(client_next(w.c, w.now_us, &m)); /* after a pause */
    }
    w.now_us = client_due_us(w.c);
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_ACQUIRE);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE, .fence = 5}),
                     CLIENT_DONE);
    w.now_us += SECOND;
    assert_false(client_next(w.c, w.now_us, &m));
    assert_true(is_held(&w, &a));
    client_free(w.c);
}

static void an_unused_lock_is_released_when_a_keep_alive_says_that_it_is_wanted(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_SHARED);
    world_init(&w, true);
    grant(&w, &a, 5);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &m, &result), CLIENT_KNOWN);
    w.now_us += 4 * SECOND;
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_KEEPALIVE);
    assert_int_equal(answer(&w, &m,
                            (struct client_answer){.result = CLIENT_DONE,
                                                   .wanted = (const char *const[]){"b", "a"},
                                                   .n_wanted = 2}),
                     CLIENT_DONE);
    assert_true(client_next(w.c, w.now_us, &m));
    assert_int_equal(m.kind, CLIENT_RELEASE);
    client_free(w.c);
}

static void a_cached_lock_is_not_granted_past_the_sessions_deadline(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_SHARED), b = want("a", 2, HF_SHARED);
    world_init(&w, true);
    grant(&w, &a, 5);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &m, &result), CLIENT_KNOWN);
    w.now_us += 1000 * TTL_MS - client_margin_us(TTL_MS);
    assert_int_equal(ask(&w, &b, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_KEEPALIVE); /* is there a session at all? */
    assert_null(lease_of(&w, &b));
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE}), CLIENT_DONE);
    assert_int_equal(ask(&w, &b, &m), CLIENT_KNOWN);
    assert_true(is_held(&w, &b));
    client_free(w.c);
}

static void a_writer_of_the_same_process_takes_the_cached_lock_out_of_its_way(void **state)
{
    (void)state;
    struct world w;
    struct client_message m;
    enum client_result result;
    struct lease_request a = want("a", 1, HF_SHARED), writer = want("a", 2, HF_EXCLUSIVE);
    world_init(&w, true);
    grant(&w, &a, 5);
    assert_int_equal(client_release(w.c, lease_of(&w, &a), w.now_us, &m, &result), CLIENT_KNOWN);
    assert_int_equal(ask(&w, &writer, &m), CLIENT_SEND);
    assert_int_equal(m.kind, CLIENT_RELEASE);
    assert_int_equal(answer(&w, &m, (struct client_answer){.result = CLIENT_DONE}), CLIENT_DONE);
    grant(&w, &writer, 6);
    client_free(w.c);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(deadlines_count_from_before_the_request_minus_the_margin),
        cmocka_unit_test(an_unanswered_keep_alive_proves_nothing),
        cmocka_unit_test(a_session_that_is_not_proved_to_live_is_given_up),
        cmocka_unit_test(a_session_that_is_gone_takes_all_leases_with_it),
        cmocka_unit_test(a_lost_answer_is_followed_by_the_same_owner),
        cmocka_unit_test(an_owner_that_has_ended_is_replaced),
        cmocka_unit_test(a_grant_for_a_caller_that_gave_up_is_released),
        cmocka_unit_test(an_older_answer_changes_nothing),
        cmocka_unit_test(a_lease_that_is_not_renewed_ends_and_is_released),
        cmocka_unit_test(a_place_is_told_of_its_turn_and_asks),
        cmocka_unit_test(a_grant_that_came_while_the_request_waited_is_claimed),
        cmocka_unit_test(a_turn_that_is_told_before_the_answer_is_remembered),
        cmocka_unit_test(a_lock_that_has_ended_is_lost_also_with_other_messages_under_way),
        cmocka_unit_test(a_request_that_waits_is_sent_after_the_releases_of_its_thread),
        cmocka_unit_test(a_deadlock_is_not_believed_while_a_release_of_the_thread_is_under_way),
        cmocka_unit_test(readers_share_a_cached_lock_without_a_message),
        cmocka_unit_test(a_wanted_lock_is_granted_to_nobody_and_released_after_use),
        cmocka_unit_test(the_service_is_told_that_a_lock_is_in_use_until_it_answers),
        cmocka_unit_test(an_unused_lock_is_released_when_a_keep_alive_says_that_it_is_wanted),
        cmocka_unit_test(a_cached_lock_is_not_granted_past_the_sessions_deadline),
        cmocka_unit_test(a_writer_of_the_same_process_takes_the_cached_lock_out_of_its_way),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
