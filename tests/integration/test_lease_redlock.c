/* The Redlock driver when servers are down, hang, answer nonsense, or forget everything.  Each test
 * has three redis-servers of its own. */
#include "support/fixtures.h"

#include "support/port.h"
#include "support/redlock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a minority ---- */

static void a_server_that_is_down_does_not_matter(void **state)
{
    (void)state;
    struct trio t;
    int64_t last = 0;
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 8000);
    use(l, &last);
    redis_server_kill(&t.s[1]);
    use(l, &last);
    use(l, &last);
    lease_close(l);
    l = must_open(t.url, 8000); /* a client that starts now */
    use(l, &last);
    lease_close(l);
    trio_stop(&t);
}

/* The first call waits for the server that hangs; the others do not, nor do those of other handles.
 * Returns false if some of them were slow: on a busy machine that may have other reasons. */
static bool hang_once(struct trio *t, struct lease *l, struct lease *other, int64_t *last)
{
    use(l, last);
    use(other, last);
    redis_server_pause(&t->s[0]);
    int64_t first_ms = boot_ms(), slow = 0;
    struct lease_request q = asks_for(KEY, 10000);
    assert_int_equal(must_acquire_again(l, &q).result, HF_DONE);
    first_ms = boot_ms() - first_ms;
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    for (int i = 0; i < 10; i++) {
        int64_t from_ms = boot_ms();
        use(i % 2 ? l : other, last);
        slow += boot_ms() - from_ms >= 240;
    }
    redis_server_resume(&t->s[0]);
    for (int64_t end_ms = boot_ms() + 20000; has_lock(&t->s[0]) && boot_ms() < end_ms;)
        nap_ms(10);
    assert_false(has_lock(&t->s[0])); /* what it was asked while it hung was given back in order */
    assert_true(first_ms >= 200);
    return first_ms <= 1200 && slow <= 2; /* it is tried again after a second */
}

static void a_server_that_hangs_costs_its_timeout_once(void **state)
{
    (void)state;
    struct trio t;
    int64_t last = 0;
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 2000), *other = NULL;
    assert_int_equal(lease_clone(l, &other, NULL), HF_DONE);
    for (int i = 0; !hang_once(&t, l, other, &last); i++)
        assert_true(i < 10);
    use(l, &last);
    use(other, &last);
    lease_close(l);
    lease_close(other);
    trio_stop(&t);
}

static void *resume_later(void *ctx)
{
    nap_ms(1000); /* four times as long as a server gets that nobody needs */
    redis_server_resume(ctx);
    return NULL;
}

/* Of three servers one has no vote, so the other two are needed: the call waits for both. */
static void a_server_that_is_needed_has_the_whole_timeout(void **state)
{
    (void)state;
    struct trio t;
    int64_t last = 0;
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 20000), *fresh = must_open(t.url, 20000);
    use(l, &last);
    redis_server_kill(&t.s[2]);
    redis_server_again(&t.s[2]);
    use(l, &last);
    for (int i = 0; i < 3; i++) {
        struct lease_request q = asks_for(KEY, 60000);
        struct lease_verdict v = {0};
        struct hf_fault fault = {0};
        pthread_t thread;
        if (i == 2)
            assert_int_equal(lease_acquire(l, &q, &v, &fault), HF_DONE);
        redis_server_pause(&t.s[0]);
        assert_int_equal(pthread_create(&thread, NULL, resume_later, &t.s[0]), 0);
        enum hf_result result = i == 2 ? lease_release(l, &q, 1, &v, &fault)
                                       : lease_acquire(i ? fresh : l, &q, &v, &fault);
        pthread_join(thread, NULL);
        if (result != HF_DONE)
            fail_msg("%d: %s", i, fault.msg);
        assert_int_equal(v.result, HF_DONE);
        if (i < 2)
            assert_int_equal(must_release_again(l, &q), HF_DONE);
    }
    lease_close(fresh);
    lease_close(l);
    trio_stop(&t);
}

struct nonsense {
    int fd;
    pthread_t thread;
};

static void *speak_nonsense(void *arg)
{
    const struct nonsense *n = arg;
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    for (int client; (client = accept(n->fd, NULL, NULL)) >= 0; close(client))
        (void)!write(client, text, sizeof text - 1);
    return NULL;
}

static void a_server_that_answers_nonsense_does_not_matter(void **state)
{
    (void)state;
    struct trio t;
    struct nonsense n;
    char url[256];
    int64_t last = 0;
    trio_start_vouched(&t, "");
    int port = port_free(&n.fd);
    assert_int_equal(pthread_create(&n.thread, NULL, speak_nonsense, &n), 0);
    url_of(url, t.s[0].port, port, t.s[2].port, "");
    struct lease *l = must_open(url, 8000);
    /* Of three servers two are new, which is not all of them: see below. */
    for (int i = 0; i < 3; i++)
        use(l, &last);
    lease_close(l);
    url_of(url, port, t.s[0].port, port_free(NULL), "");
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 8000, .clock = &clock_system};
    assert_int_equal(lease_open(&lease_redlock, url, &options, &l, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "1 of 3 servers"));
    shutdown(n.fd, SHUT_RDWR);
    pthread_join(n.thread, NULL);
    close(n.fd);
    trio_stop(&t);
}

/* ---- no majority ---- */

static void without_a_majority_the_message_says_which_servers_failed_and_why(void **state)
{
    (void)state;
    struct trio t;
    int64_t last = 0;
    char port[16];
    struct hf_fault fault = {0};
    struct lease_verdict v;
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 8000);
    use(l, &last);
    struct lease_request q = asks_for(KEY, 20000), next = asks_for(KEY, 20000);
    assert_int_equal(must_acquire_again(l, &q).result, HF_DONE);
    redis_server_kill(&t.s[0]);
    redis_server_kill(&t.s[2]);
    nap_ms(150); /* an idle link is looked at */
    assert_int_equal(lease_acquire(l, &next, &v, &fault), HF_UNREACHABLE);
    for (int i = 0; i < 3; i += 2) {
        snprintf(port, sizeof port, "%d", t.s[i].port);
        assert_non_null(strstr(fault.msg, port));
    }
    assert_non_null(strstr(fault.msg, "1 of 3 servers"));
    assert_non_null(strstr(fault.msg, "refused"));
    assert_int_equal(lease_renew(l, &q, 1, &v, &fault), HF_UNREACHABLE);
    assert_int_equal(lease_release(l, &q, 1, &v, &fault), HF_UNKNOWN); /* on one it was */
    assert_false(has_lock(&t.s[1]));
    lease_close(l);
    trio_stop(&t);
}

static void an_attempt_that_got_a_part_of_the_servers_leaves_nothing(void **state)
{
    (void)state;
    struct trio t;
    char url[256];
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 8000);
    int64_t last = 0;
    use(l, &last); /* all servers take part */
    url_of(url, t.s[0].port, t.s[1].port, port_free(NULL), "");
    struct lease *part = must_open(url, 8000);
    struct lease_request a = asks_for(KEY, 20000), b = asks_for(KEY, 20000);
    assert_int_equal(must_acquire_again(part, &a).result, HF_DONE);
    assert_false(has_lock(&t.s[2]));
    for (int i = 0; i < 5; i++) {
        struct lease_verdict v = must_acquire_again(l, &b);
        assert_int_equal(v.result, HF_TAKEN);
        assert_in_range(v.remaining_ms, 10000, 20000);
        assert_false(has_lock(&t.s[2]));
    }
    assert_int_equal(must_release_again(part, &a), HF_DONE);
    /* Two servers hang, so nobody can tell; when they go on, the release follows the request. */
    struct lease *hasty = must_open(t.url, 2000);
    use(hasty, &last);
    redis_server_pause(&t.s[0]);
    redis_server_pause(&t.s[1]);
    struct lease_verdict v;
    assert_int_equal(lease_acquire(hasty, &b, &v, NULL), HF_UNKNOWN);
    assert_int_equal(lease_release(hasty, &b, 1, &v, NULL), HF_UNKNOWN);
    redis_server_resume(&t.s[0]);
    redis_server_resume(&t.s[1]);
    bool left = true;
    for (int64_t end_ms = boot_ms() + 20000; left && boot_ms() < end_ms; nap_ms(20))
        left = has_lock(&t.s[0]) || has_lock(&t.s[1]) || has_lock(&t.s[2]);
    assert_false(left);
    lease_close(hasty);
    lease_close(part);
    lease_close(l);
    trio_stop(&t);
}

/* ---- servers that forget ---- */

static void forget(struct redis_server *s, bool by_flush)
{
    char answer[256];
    if (by_flush) {
        ask(s, "FLUSHALL", answer);
        assert_string_equal(answer, "+OK");
        return;
    }
    redis_server_kill(s);
    redis_server_again(s);
}

/* A holds the lock on s1 and s2.  s2 forgets it.  B could win s2 and s3. */
static void replay_counter_example(bool by_flush)
{
    struct trio t;
    char url[256];
    int64_t last = 0;
    trio_start_vouched(&t, "?max_ttl=5s");
    struct lease *b = must_open(t.url, 8000);
    struct lease_request used = asks_for(KEY, 1000);
    last = acquire_soon(b, &used).fence;
    assert_int_equal(must_release_again(b, &used), HF_DONE);
    url_of(url, t.s[0].port, t.s[1].port, port_free(NULL), "?max_ttl=5s");
    struct lease *a = must_open(url, 8000);
    struct lease_request qa = asks_for(KEY, 5000), qb = asks_for(KEY, 5000);
    int64_t from_ms = boot_ms();
    struct lease_verdict held = must_acquire_again(a, &qa), v;
    assert_int_equal(held.result, HF_DONE);
    assert_true(held.fence > last);
    assert_true(has_lock(&t.s[0]) && has_lock(&t.s[1]) && !has_lock(&t.s[2]));
    forget(&t.s[1], by_flush);
    assert_false(has_lock(&t.s[1]));
    struct lease *fresh = must_open(t.url, 8000); /* that knows nothing of the past */
    int refused = 0;
    for (int i = 0;; i++) {
        struct lease *l = i % 2 ? fresh : b;
        enum hf_result result = lease_acquire(l, &qb, &v, NULL);
        if (result == HF_DONE && v.result == HF_DONE)
            break;
        refused++;
        assert_true(boot_ms() - from_ms < 60000);
        nap_ms(5);
    }
    assert_true(boot_ms() - from_ms >= held.remaining_ms);
    assert_true(refused > 0);
    assert_true(v.fence > held.fence);
    lease_close(fresh);
    lease_close(a);
    lease_close(b);
    trio_stop(&t);
}

static void a_server_restarted_empty_does_not_help_a_second_holder(void **state)
{
    (void)state;
    replay_counter_example(false);
}

static void a_server_emptied_does_not_help_a_second_holder(void **state)
{
    (void)state;
    replay_counter_example(true);
}

static void set_fence(const struct redis_server *s, int64_t fence)
{
    char command[128], answer[256];
    snprintf(command, sizeof command, "SET holdfast:redlock:fence %lld", (long long)fence);
    ask(s, command, answer);
    assert_string_equal(answer, "+OK");
}

static void fences_grow_when_any_one_server_forgets(void **state)
{
    (void)state;
    struct trio t;
    int64_t last = 0;
    trio_start_vouched(&t, "?max_ttl=5s");
    struct lease *l = must_open(t.url, 8000);
    use(l, &last);
    for (int i = 0; i < 3; i++) {
        /* The counters differ, and the largest is on the server that forgets. */
        for (int k = 0; k < 3; k++)
            set_fence(&t.s[(i + 1 + k) % 3], last + 1000000 * (k + 1));
        int64_t before = last;
        for (int64_t end_ms = boot_ms() + 60000; last <= before + 3000000;) {
            assert_true(boot_ms() < end_ms);
            use(l, &last); /* a grant brings the largest to a majority, if that server takes part */
        }
        forget(&t.s[i], i == 1);
        use(l, &last);
        assert_false(has_vote(&t.s[i]));
        vouch(&t.s[i]); /* nobody holds a lock, so it need not wait */
        struct lease *next = must_open(t.url, 8000);
        for (int64_t end_ms = boot_ms() + 60000; !has_vote(&t.s[i]);) {
            assert_true(boot_ms() < end_ms);
            use(next, &last);
        }
        lease_close(next);
    }
    lease_close(l);
    trio_stop(&t);
}

static bool all_have_lock(const struct trio *t)
{
    return has_lock(&t->s[0]) && has_lock(&t->s[1]) && has_lock(&t->s[2]);
}

/* The counters of the servers differ, as after contention. */
static void a_grant_keeps_its_fence_whichever_server_is_lost(void **state)
{
    (void)state;
    for (int lost = 0; lost < 3; lost++) {
        for (int largest = 0; largest < 3; largest++) {
            struct trio t;
            int64_t last = 0;
            trio_start_vouched(&t, "");
            struct lease *l = must_open(t.url, 8000);
            struct lease_request q;
            int64_t fence;
            for (int64_t end_ms = boot_ms() + 60000;; (void)must_release_again(l, &q)) {
                use(l, &last);
                set_fence(&t.s[largest], last + 1000);
                q = asks_for(KEY, 20000);
                fence = must_acquire_again(l, &q).fence;
                if (fence == last + 1001)
                    break; /* that server was not too slow to take part */
                assert_true(boot_ms() < end_ms);
            }
            /* A server that was too slow to store the grant is as good as lost; a renewal stores it
             * there, and only then may another one be killed. */
            for (int64_t end_ms = boot_ms() + 60000; !all_have_lock(&t);) {
                assert_int_equal(must_renew_again(l, &q).fence, fence);
                assert_true(boot_ms() < end_ms);
            }
            redis_server_kill(&t.s[lost]);
            assert_int_equal(must_renew_again(l, &q).fence, fence);
            assert_int_equal(must_acquire_again(l, &q).fence, fence);
            assert_int_equal(must_release_again(l, &q), HF_DONE);
            lease_close(l);
            trio_stop(&t);
        }
    }
}

/* One after another, so that each takes part again before the next one goes.  Returns false if the
 * lock ran out because the machine stood still for its TTL. */
static bool outlast_restarts(struct trio *t, struct lease *l, struct lease *rival)
{
    struct lease_request a = asks_for(KEY, 4000), b = asks_for(KEY, 4000);
    int64_t fence = acquire_soon(l, &a).fence, renewed_ms = boot_ms();
    for (int i = 0; i < 3; i++) {
        forget(&t->s[i], false);
        int64_t from_ms = boot_ms();
        for (bool back = false; !back; back = has_vote(&t->s[i]) && has_lock(&t->s[i])) {
            assert_true(boot_ms() - from_ms < 60000);
            int64_t asked_ms = boot_ms();
            struct lease_verdict v = must_renew_again(l, &a);
            bool is_late = boot_ms() - renewed_ms >= a.ttl_ms;
            if (v.result == HF_LOST && is_late)
                return false;
            assert_int_equal(v.result, HF_DONE);
            assert_int_equal(v.fence, fence);
            renewed_ms = asked_ms;
            enum hf_result other = must_acquire_again(rival, &b).result;
            if (other == HF_DONE && boot_ms() - renewed_ms >= a.ttl_ms) {
                (void)must_release_again(rival, &b);
                return false;
            }
            assert_int_equal(other, HF_TAKEN);
            nap_ms(20);
        }
        assert_true(boot_ms() - from_ms >= 3900); /* it had no vote for max_ttl */
    }
    enum hf_result given = must_release_again(l, &a);
    if (given == HF_LOST && boot_ms() - renewed_ms >= a.ttl_ms)
        return false;
    assert_int_equal(given, HF_DONE);
    assert_true(must_acquire_again(rival, &b).fence > fence);
    return true;
}

static void a_lock_outlasts_restarts_of_all_servers_one_after_another(void **state)
{
    (void)state;
    struct trio t;
    trio_start_vouched(&t, "?max_ttl=4s");
    struct lease *l = must_open(t.url, 8000), *rival = must_open(t.url, 8000);
    for (int i = 0; !outlast_restarts(&t, l, rival); i++)
        assert_true(i < 10);
    lease_close(rival);
    lease_close(l);
    trio_stop(&t);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_down_does_not_matter),
        cmocka_unit_test(a_server_that_hangs_costs_its_timeout_once),
        cmocka_unit_test(a_server_that_is_needed_has_the_whole_timeout),
        cmocka_unit_test(a_server_that_answers_nonsense_does_not_matter),
        cmocka_unit_test(without_a_majority_the_message_says_which_servers_failed_and_why),
        cmocka_unit_test(an_attempt_that_got_a_part_of_the_servers_leaves_nothing),
        cmocka_unit_test(a_server_restarted_empty_does_not_help_a_second_holder),
        cmocka_unit_test(a_server_emptied_does_not_help_a_second_holder),
        cmocka_unit_test(fences_grow_when_any_one_server_forgets),
        cmocka_unit_test(a_grant_keeps_its_fence_whichever_server_is_lost),
        cmocka_unit_test(a_lock_outlasts_restarts_of_all_servers_one_after_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
