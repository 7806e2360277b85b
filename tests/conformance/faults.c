/* Claims about invalid names, TTLs and URLs, and about answers that do not come: servers that do
 * not exist, servers that stay silent, connections that are cut between the execution and the
 * answer. */
#include "conformance.h"

#include "support/lease_call.h"
#include "support/proxy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- input ---- */

static void refused_everywhere(struct world *w, const char *key, size_t len)
{
    struct party p;
    party_init(&p, "x");
    p.r.key = key;
    p.r.key_len = len;
    assert_fault(try_acquire(w->l, &p), HF_BAD_REQUEST, &p.fault);
    p.r.queue = true;
    assert_fault(try_acquire(w->l, &p), HF_BAD_REQUEST, &p.fault);
    struct lease_state s = {0};
    struct hf_fault fault = {0};
    assert_fault(lease_inspect(w->l, key, len, &s, &fault), HF_BAD_REQUEST, &fault);
    fault = (struct hf_fault){0};
    assert_fault(lease_break(w->l, key, len, &fault), HF_BAD_REQUEST, &fault);
}

static void names_that_cannot_be_are_refused(void **state)
{
    struct world *w = *state;
    char large[4096];
    memset(large, 'n', sizeof large);
    refused_everywhere(w, "", 0);
    refused_everywhere(w, large, w->info->name_len_max + 1);
    refused_everywhere(w, large, sizeof large);
    static const struct {
        const char *name;
        size_t len;
    } bad[] = {
        {"\xff", 1},
        {"a\xc3", 2},
        {"\xc0\x80", 2},
        {"\xed\xa0\x80", 3},
        {"\xf4\x90\x80\x80", 4},
        {"\x80", 1},
        {"a\nb", 3},
        {"\t", 1},
        {"a\0b", 3},
        {"\x7f", 1},
        {"\xc2\x85", 2},
        {"\x1b[31m", 5},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused_everywhere(w, bad[i].name, bad[i].len);
    /* the longest name is a name like any other */
    struct party p, q;
    large[w->info->name_len_max] = '\0';
    party_init(&p, large);
    party_init(&q, large);
    assert_int_equal(acquire(w->l, &p), HF_DONE);
    assert_int_equal(acquire(w->l, &q), HF_TAKEN);
    assert_int_equal(release(w->l, &p), HF_DONE);
}

static void ttls_that_cannot_be_are_refused(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "ttls");
    const int64_t bad[] = {
        0, -1, INT64_MIN, INT64_MAX, lease_ttl_min_ms(w->l) - 1, lease_ttl_max_ms(w->l) + 1};
    const int64_t max_ms = lease_ttl_max_ms(w->l);
    struct party p, holder;
    party_init(&p, key);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p.r.ttl_ms = bad[i];
        assert_fault(try_acquire(w->l, &p), HF_BAD_REQUEST, &p.fault);
    }
    party_init(&holder, key);
    holder.r.ttl_ms = max_ms;
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    assert_remaining(holder.v.remaining_ms, max_ms, from_ms);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        holder.r.ttl_ms = bad[i];
        holder.fault = (struct hf_fault){0};
        assert_fault(lease_renew(w->l, &holder.r, 1, &holder.v, &holder.fault), HF_BAD_REQUEST,
                     &holder.fault);
    }
    struct lease_state s = inspect(w->l, key);
    assert_remaining(s.holders[0].remaining_ms, max_ms, from_ms);
    lease_state_close(&s);
    assert_int_equal(release(w->l, &holder), HF_DONE);
}

static void a_label_and_slots_have_bounds(void **state)
{
    struct world *w = *state;
    char key[64], label[LEASE_LABEL_MAX + 1];
    key_make(key, "bounds");
    memset(label, 'x', sizeof label);
    struct party p;
    party_init(&p, key);
    p.r.label = label;
    p.r.label_len = sizeof label;
    assert_fault(try_acquire(w->l, &p), HF_BAD_REQUEST, &p.fault);
    party_init(&p, key);
    p.r.slots = 0;
    assert_fault(try_acquire(w->l, &p), HF_BAD_REQUEST, &p.fault);
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 0);
    lease_state_close(&s);
}

static void what_is_declared_can_be(void **state)
{
    struct world *w = *state;
    assert_true(w->info->ttl_min_ms > 0);
    assert_true(lease_ttl_max_ms(w->l) > LONG_MS);
    assert_true(strlen(w->info->beware) > 8);
    assert_in_range(w->info->name_len_max, 1, LEASE_NAME_MAX);
    assert_true(strlen(w->info->url) > 0 && strlen(w->info->ttl) > 8 &&
                strlen(w->info->survives) > 8);
    for (const char *const *scheme = w->driver->schemes; *scheme; scheme++)
        assert_ptr_equal(lease_driver_for(*scheme), w->driver);
    static const char *const unknown[] = {"", "nonsense", "nonsense://host", "MEMORY", "://"};
    for (int i = 0; i < 5; i++)
        assert_null(lease_driver_for(unknown[i]));
}

/* How much later than its timeout a call may end on a busy machine: nothing else would end it. */
#define LATE_MS 8000

static struct hf_fault assert_not_opened(struct world *w, const char *what, const char *url,
                                         unsigned results, int64_t timeout_ms)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    int64_t from_ms = now_ms();
    enum hf_result result = lease_open(w->driver, url, &options, &l, &fault);
    int64_t took_ms = now_ms() - from_ms;
    if (!(results & 1U << result) || strlen(fault.msg) < 9 || took_ms > timeout_ms + LATE_MS)
        print_error("%s: result %d after %d ms: %s\n", what, (int)result, (int)took_ms, fault.msg);
    assert_true(results & 1U << result);
    assert_true(strlen(fault.msg) > 8);
    assert_true(took_ms <= timeout_ms + LATE_MS);
    assert_null(l); /* outputs are untouched */
    return fault;
}

static void urls_that_cannot_be_are_refused(void **state)
{
    struct world *w = *state;
    for (const struct bad_url *bad = w->backend->bad_urls; bad->what; bad++)
        assert_not_opened(w, bad->what, bad->url, bad->results, 1000);
}

static void a_port_without_a_server_fails_at_once(void **state)
{
    struct world *w = *state;
    const int port = port_free(NULL);
    char url[256], number[16];
    w->backend->url_at(w->backend, port, url, sizeof url);
    snprintf(number, sizeof number, "%d", port);
    int64_t from_ms = now_ms();
    struct hf_fault fault = assert_not_opened(w, "closed port", url, 1U << HF_UNREACHABLE, 20000);
    assert_true(now_ms() - from_ms < 15000);
    assert_non_null(strstr(fault.msg, number));
    assert_true(strstr(fault.msg, "refused") || strstr(fault.msg, "connect"));
    assert_null(strstr(fault.msg, "word")); /* of the password */
}

static void a_server_that_says_nothing_is_left_at_the_timeout(void **state)
{
    struct world *w = *state;
    int fd;
    char url[256];
    w->backend->url_at(w->backend, port_free(&fd), url, sizeof url);
    int64_t from_ms = now_ms();
    assert_not_opened(w, "black hole", url, 1U << HF_UNREACHABLE, 400);
    assert_true(now_ms() - from_ms >= 350);
    close(fd);
}

/* ---- answers that do not come ---- */

/* Every operation once, so that scripts are loaded and statements prepared. */
static enum hf_result warm_up(struct lease *l, struct hf_fault *fault)
{
    char key[64];
    key_make(key, "warm");
    struct party p;
    party_queued(&p, key);
    lease_call *const calls[] = {call_acquire, lease_renew, lease_release};
    for (int i = 0; i < 3; i++) {
        enum hf_result result = calls[i](l, &p.r, 1, &p.v, fault);
        if (result != HF_DONE)
            return result;
        assert_int_equal(p.v.result, HF_DONE);
    }
    return HF_DONE;
}

/* The server may stand still for longer than a short timeout: then it is tried again. */
static struct lease *open_through(struct world *w, struct relay **ret_proxy, int64_t timeout_ms)
{
    char url[256];
    struct relay *proxy = *ret_proxy = proxy_start(w->backend->port);
    relay_lose_only(proxy, w->backend->last_word);
    if (w->backend->in_turn)
        relay_take_turns(proxy);
    w->backend->url_at(w->backend, relay_port(proxy), url, sizeof url);
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    for (int64_t end_ms = now_ms() + 20000;;) {
        struct lease *l = NULL;
        struct hf_fault fault = {0};
        enum hf_result result = lease_open(w->driver, url, &options, &l, &fault);
        if (result == HF_DONE && (result = warm_up(l, &fault)) == HF_DONE)
            return l;
        lease_close(l);
        if (now_ms() > end_ms || (result != HF_UNREACHABLE && result != HF_UNKNOWN))
            must(result, &fault);
    }
}

/* The call is executed and its answer withheld: the result is HF_UNKNOWN. */
static void cut(struct relay *proxy, lease_call *call, struct lease *l, struct party *p)
{
    uint64_t cuts = relay_count(proxy).lost;
    relay_set(proxy, RELAY_CUT);
    p->fault = (struct hf_fault){0};
    enum hf_result result = call(l, &p->r, 1, &p->v, &p->fault);
    relay_set(proxy, RELAY_PASS);
    assert_fault(result, HF_UNKNOWN, &p->fault);
    assert_true(relay_count(proxy).lost > cuts);
}

static void a_cut_answer_is_unknown_and_asking_again_tells(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    struct lease *l = open_through(w, &proxy, 10000);
    for (int i = 0; i < 3; i++) {
        char key[64];
        key_make(key, "cut");
        struct party a, b, waiter;
        party_init(&a, key);
        party_init(&b, key);
        party_queued(&waiter, key);
        cut(proxy, call_acquire, l, &a);
        assert_int_equal(acquire(w->l, &b), HF_TAKEN); /* it was executed */
        assert_int_equal(acquire_again(l, &a), HF_DONE);
        struct lease_state s = inspect(w->l, key);
        assert_int_equal(s.n_holders, 1);
        assert_int_equal(s.holders[0].fence, a.v.fence);
        lease_state_close(&s);
        cut(proxy, lease_renew, l, &a);
        assert_int_equal(acquire_again(l, &a), HF_DONE);
        assert_int_equal(renew(l, &a), HF_DONE);
        if (w->info->fair) {
            cut(proxy, call_acquire, l, &waiter);
            int64_t asked_ms = now_ms();
            assert_int_equal(acquire_again(l, &waiter), HF_TAKEN);
            assert_int_equal(waiter.v.position, 1); /* one place, not two */
            enum hf_result given = release(l, &waiter);
            assert_true(given == HF_DONE || (given == HF_LOST && place_may_be_lost(asked_ms)));
        }
        cut(proxy, lease_release, l, &a);
        assert_int_equal(acquire_again(l, &b), HF_DONE);    /* it was given back */
        assert_int_equal(release(l, &a), HF_LOST);          /* and b keeps its lease */
        struct lease *other = w->info->outlives ? w->l : l; /* w->l is of another open */
        assert_int_equal(renew(other, &b), HF_DONE);
        assert_int_equal(release(other, &b), HF_DONE);
    }
    lease_close(l);
    relay_stop(proxy);
}

/* As release, but repeated without an answer; the lease may be given back by then. */
static enum hf_result release_again(struct lease *l, struct party *p)
{
    enum hf_result result, given = HF_DONE;
    for (int64_t end_ms = now_ms() + 20000;
         (result = lease_release(l, &p->r, 1, &p->v, &p->fault)) != HF_DONE && now_ms() < end_ms;)
        given = result == HF_UNKNOWN ? HF_LOST : given;
    must(result, &p->fault);
    return p->v.result == given ? HF_DONE : p->v.result;
}

static void no_answer_is_unknown_at_the_timeout(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    struct lease *l = open_through(w, &proxy, 2000);
    char key[64];
    key_make(key, "silence");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    relay_set(proxy, RELAY_SWALLOW);
    int64_t from_ms, end_ms = now_ms() + 20000;
    enum hf_result result;
    do { /* until the server has answered: it may stand still for longer than the timeout */
        from_ms = now_ms();
        result = try_acquire(l, &a);
    } while (relay_count(proxy).lost == 0 && from_ms < end_ms);
    assert_fault(result, HF_UNKNOWN, &a.fault);
    /* A client that pings its server leaves it earlier, after two thirds of the timeout. */
    assert_in_range(now_ms() - from_ms, 600, 2000 + LATE_MS);
    relay_set(proxy, RELAY_PASS);
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    /* The late answer must not count as that of the next request. */
    assert_int_equal(acquire_again(l, &b), HF_TAKEN);
    assert_int_equal(acquire_again(l, &a), HF_DONE);
    assert_int_equal(release_again(l, &a), HF_DONE);
    lease_close(l);
    relay_stop(proxy);
}

static void a_wait_without_answers_ends_too(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    struct lease *l = open_through(w, &proxy, 2000);
    relay_lose_only(proxy, NULL);
    char key[64];
    key_make(key, "deaf");
    struct party holder, a;
    party_init(&holder, key);
    party_queued(&a, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    assert_int_equal(acquire_again(l, &a), HF_TAKEN);
    relay_set(proxy, RELAY_SWALLOW);
    int64_t from_ms = now_ms();
    (void)!lease_wait(l, &a.r, 600, &a.fault); /* the result does not matter */
    assert_true(now_ms() - from_ms < 600 + 2 * 2000 + LATE_MS);
    relay_set(proxy, RELAY_PASS);
    assert_int_equal(acquire_again(l, &a), HF_TAKEN);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    assert_int_equal(acquire_again(l, &a), HF_DONE);
    assert_int_equal(release_again(l, &a), HF_DONE);
    lease_close(l);
    relay_stop(proxy);
}

static void a_server_gone_is_unreachable_and_nothing_was_done(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    struct lease *l = open_through(w, &proxy, 2000);
    relay_stop(proxy);
    char key[64];
    key_make(key, "gone");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    enum hf_result first = try_acquire(l, &a); /* sent on a connection that is closed */
    assert_true(first == HF_UNREACHABLE || first == HF_UNKNOWN);
    int64_t from_ms = now_ms();
    assert_fault(try_acquire(l, &a), HF_UNREACHABLE, &a.fault);
    assert_true(now_ms() - from_ms < 2000 + LATE_MS);
    assert_int_equal(acquire(w->l, &b), HF_DONE);
    assert_int_equal(release(w->l, &b), HF_DONE);
    lease_close(l);
}

const struct claim faults_claims[] = {
    CLAIM(what_is_declared_can_be, 0),
    CLAIM(names_that_cannot_be_are_refused, 0),
    CLAIM(ttls_that_cannot_be_are_refused, 0),
    CLAIM(a_label_and_slots_have_bounds, 0),
    CLAIM(urls_that_cannot_be_are_refused, 0),
    CLAIM(a_port_without_a_server_fails_at_once, NEEDS_PORT),
    CLAIM(a_server_that_says_nothing_is_left_at_the_timeout, NEEDS_PORT),
    CLAIM(a_cut_answer_is_unknown_and_asking_again_tells, NEEDS_PORT),
    CLAIM(no_answer_is_unknown_at_the_timeout, NEEDS_PORT),
    CLAIM(a_wait_without_answers_ends_too, NEEDS_PORT),
    CLAIM(a_server_gone_is_unreachable_and_nothing_was_done, NEEDS_PORT),
    {0},
};
