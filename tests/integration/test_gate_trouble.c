/* The gate when the server lacks the scripts, loses its data, restarts, hangs or refuses, and with
 * many claims at once. */
#include "support/gate.h"
#include "support/port.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- trouble ---- */

static void a_flush_between_claim_and_settle_does_no_harm(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    wish_seats(&w, 1);
    assert_true(wish_granted(g, token_of(1), &w));
    beside_flush(NULL);
    settle_one(g, token_of(1), (struct gate_seat){EVENT, 1, 5, 60000});
    assert_string_equal(beside_get("seat:{7}:1"), "5");
    beside_flush(NULL);
    settle_one(g, token_of(1), (struct gate_seat){EVENT, 1, 5, 0});
    assert_true(wish_granted(g, token_of(2), &w));
    gate_close(g);
}

static void lost_scripts_of_a_mixed_call_are_sent_again(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    wish_seats(&w, 1);
    assert_true(wish_granted(g, token_of(1), &w));
    freeReplyObject(beside_ask("SCRIPT|FLUSH"));
    assert_true(wish_granted(g, token_of(1), &w));
    struct gate_seat seats[2] = {{EVENT, 1, 5, 60000}, {EVENT + 1, 1, 6, 60000}};
    struct gate_count count = {
        .event = EVENT, .area = 1, .seq = 4, .available = 20, .ttl_ms = 60000};
    freeReplyObject(beside_ask("SCRIPT|FLUSH"));
    assert_int_equal(gate_settle(g, token_of(1), seats, 2, &count, 1, NULL), HF_DONE);
    assert_string_equal(beside_get("seat:{8}:1"), "6");
    assert_string_equal(beside_get("area:{7}:1"), "4 20");
    freeReplyObject(beside_ask("SCRIPT|FLUSH"));
    struct seen s = scan_all(g);
    assert_int_equal(s.seats, 2);
    gate_close(g);
}

static void a_restart_is_survived_and_a_failure_reads_as_granted(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    struct hf_fault fault = {0};
    wish_seats(&w, 1);
    assert_true(wish_granted(g, token_of(1), &w));
    assert_false(wish_granted(g, token_of(2), &w));
    redis_server_kill(&gate_server);
    enum hf_result result = gate_claim(g, token_of(2), &w.c, 1, &fault);
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
    assert_int_equal(fault.result, result);
    assert_true(gate_claim_granted(&w.c));
    assert_int_equal(gate_claim(g, token_of(2), &w.c, 1, &fault), HF_UNREACHABLE);
    assert_int_equal(gate_ping(g, &fault), HF_UNREACHABLE);
    assert_int_equal(
        gate_settle(g, token_of(1), &(struct gate_seat){EVENT, 1, 5, 0}, 1, NULL, 0, &fault),
        HF_UNREACHABLE);
    struct seen s = {0};
    struct gate_visitor visitor = seen_visitor(&s);
    assert_int_equal(gate_scan(g, &visitor, &fault), HF_UNREACHABLE);
    assert_int_equal(gate_drop(g, &(const char *){"k"}, &(size_t){1}, 1, NULL), HF_UNREACHABLE);
    redis_server_again(&gate_server);
    beside_hang_up();
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    assert_true(wish_granted(g, token_of(2), &w)); /* the restarted server is empty */
    gate_close(g);
}

static int stops_asked;
static bool stop_at_the_third(void *ctx)
{
    (void)ctx;
    return ++stops_asked == 3;
}

static void a_scan_of_a_large_server_ends_when_it_is_stopped(void **state)
{
    (void)state;
    struct gate *g = gate_at(gate_server.url, GATE_PATIENT_MS);
    struct hf_fault fault = {0};
    struct seen s = {0};
    struct gate_visitor visitor = seen_visitor(&s);
    char answer[64];
    redis_server_ask(&gate_server,
                     "EVAL \"for i=1,20000 do redis.call('set','other:'..i,1) end\" 0", answer,
                     sizeof answer);
    visitor.stop = stop_at_the_third;
    stops_asked = 0;
    assert_int_equal(gate_scan(g, &visitor, &fault), HF_UNREACHABLE);
    assert_int_equal(stops_asked, 3);
    visitor.stop = NULL;
    assert_int_equal(gate_scan(g, &visitor, &fault), HF_DONE);
    seen_close(&s);
    gate_close(g);
}

/* A busy machine may delay a call, so that the quickest of a few shows how long one takes. */
#define TRIES 20
#define SLACK_MS 100

static bool is_in_time(int64_t took_ms, int64_t timeout_ms)
{
    assert_true(took_ms >= timeout_ms - 10);
    return took_ms <= timeout_ms + SLACK_MS;
}

/* The gate's timeout is short, so that it may fail for a while. */
static void await_granted(struct gate *g, struct wish *w)
{
    int64_t end_ms = gate_now_ms() + GATE_PATIENT_MS;
    while (gate_claim(g, token_of(1), &w->c, 1, NULL) != HF_DONE)
        assert_true(gate_now_ms() < end_ms);
    assert_true(gate_claim_granted(&w->c));
}

static void a_server_that_hangs_costs_the_timeout_and_no_more(void **state)
{
    (void)state;
    enum { TIMEOUT_MS = 200 };
    struct gate *g = gate_at(gate_server.url, TIMEOUT_MS);
    struct wish w;
    bool in_time = false;
    wish_seats(&w, 1);
    for (int i = 0; i < TRIES && !in_time; i++) {
        await_granted(g, &w);
        redis_server_pause(&gate_server);
        int64_t begin_ms = gate_now_ms();
        enum hf_result result = gate_claim(g, token_of(1), &w.c, 1, NULL);
        int64_t took_ms = gate_now_ms() - begin_ms;
        begin_ms = gate_now_ms();
        enum hf_result again = gate_settle(g, token_of(1), &(struct gate_seat){EVENT, 1, 5, 0}, 1,
                                           NULL, 0, NULL); /* it has to connect again */
        int64_t again_ms = gate_now_ms() - begin_ms;
        redis_server_resume(&gate_server);
        in_time = is_in_time(took_ms, TIMEOUT_MS) & is_in_time(again_ms, TIMEOUT_MS);
        assert_true(!in_time || (result == HF_UNKNOWN && again == HF_UNREACHABLE));
    }
    assert_true(in_time);
    await_granted(g, &w);
    gate_close(g);
}

/* The server executes what it was sent, though the sender has given up waiting. */
static void a_settlement_that_is_executed_late_does_not_last_longer(void **state)
{
    (void)state;
    struct gate *g[4], *patient = gate_here();
    struct wish w, late;
    wish_seats(&w, 1, 2);
    wish_seats(&late, 3);
    settle_one(patient, token_of(3), (struct gate_seat){EVENT, 4, 0, 0});
    settle_count(patient, (struct gate_count){.event = EVENT, .area = 1, .seq = 1, .ttl_ms = 1});
    for (int i = 0; i < 4; i++) { /* now the server has the scripts */
        g[i] = gate_at(gate_server.url, 200);
        await_granted(g[i], &w); /* and the handle knows the server's clock */
    }
    redis_server_pause(&gate_server);
    enum hf_result results[4];
    results[0] =
        gate_settle(g[0], token_of(1), &(struct gate_seat){EVENT, 1, 5, 60000}, 1, NULL, 0, NULL);
    int64_t sent_ms = gate_now_ms(); /* at the latest */
    results[1] =
        gate_settle(g[1], token_of(1), &(struct gate_seat){EVENT, 2, 5, 700}, 1, NULL, 0, NULL);
    results[2] = gate_claim(g[2], token_of(2), &late.c, 1, NULL);
    results[3] =
        gate_settle(g[3], token_of(1), NULL, 0,
                    &(struct gate_count){.event = EVENT, .seq = 3, .ttl_ms = 300}, 1, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    redis_server_resume(&gate_server);
    for (int i = 0; i < 4; i++)
        assert_int_equal(results[i], HF_UNKNOWN);
    for (int i = 0; i < 3000 && strcmp(beside_get("seat:{7}:1"), "5") != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_string_equal(beside_get("seat:{7}:1"), "5");
    int64_t passed_ms = gate_now_ms() - sent_ms;
    assert_true(passed_ms >= 800);
    assert_in_range(beside_pttl("seat:{7}:1"), 1, 60000 - passed_ms + 20);
    assert_string_equal(beside_get("seat:{7}:2"), "");
    assert_string_equal(beside_get("seat:{7}:3"), "");
    assert_string_equal(beside_get("area:{7}:0"), "");
    for (int i = 0; i < 4; i++)
        gate_close(g[i]);
    gate_close(patient);
}

/* As the reconciler's handle does: it scans, finds an entry missing, and puts it back. */
static void the_first_settlement_of_a_handle_does_not_last_longer(void **state)
{
    (void)state;
    struct gate *g = gate_at(gate_server.url, 200), *patient = gate_here();
    settle_one(patient, token_of(3), (struct gate_seat){EVENT, 4, 0, 0}); /* brings the script */
    while (gate_ping(g, NULL) != HF_DONE) {
    }
    redis_server_pause(&gate_server);
    enum hf_result result =
        gate_settle(g, token_of(1), &(struct gate_seat){EVENT, 1, 5, 60000}, 1, NULL, 0, NULL);
    int64_t sent_ms = gate_now_ms(); /* at the latest */
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    redis_server_resume(&gate_server);
    assert_int_not_equal(result, HF_DONE);
    settle_one(patient, token_of(3), (struct gate_seat){EVENT, 4, 0, 0}); /* answered later */
    int64_t passed_ms = gate_now_ms() - sent_ms;
    assert_true(beside_pttl("seat:{7}:1") <= 60000 - passed_ms + 20);
    gate_close(g);
    gate_close(patient);
}

static void settle_later(struct gate *g, struct gate_seat seat)
{
    assert_int_equal(gate_settle_later(g, token_of(1), &seat, 1, NULL, 0, NULL), HF_DONE);
}

static void a_later_settlement_waits_for_nobody(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    settle_later(g, (struct gate_seat){EVENT, 1, 5, 60000}); /* the first one brings the script */
    assert_string_equal(beside_get("seat:{7}:1"), "5");
    redis_server_pause(&gate_server);
    settle_later(g, (struct gate_seat){EVENT, 2, 6, 60000});
    int64_t sent_ms = gate_now_ms(); /* at the latest */
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    redis_server_resume(&gate_server);
    assert_int_equal(gate_ping(g, NULL), HF_DONE); /* answered later */
    int64_t passed_ms = gate_now_ms() - sent_ms;
    assert_string_equal(beside_get("seat:{7}:2"), "6");
    assert_true(beside_pttl("seat:{7}:2") <= 60000 - passed_ms + 20);
    gate_close(g);
}

/* What the first call of a handle learns of the server's clock is as exact as the call is quick, so
 * that on a busy machine it is tried again. */
static void an_answer_that_was_read_late_shortens_no_entry(void **state)
{
    (void)state;
    bool is_whole = false;
    for (int i = 0; i < TRIES && !is_whole; i++) {
        struct gate *g = gate_here();
        for (uint32_t seat = 1; seat <= 2; seat++)
            settle_later(g, (struct gate_seat){EVENT, seat, 5, 60000});
        nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
        int64_t begin_ms = gate_now_ms();
        settle_later(g, (struct gate_seat){EVENT, 3, 5, 60000});
        assert_int_equal(gate_ping(g, NULL), HF_DONE);
        int64_t ttl_ms = beside_pttl("seat:{7}:3"), passed_ms = gate_now_ms() - begin_ms;
        is_whole = ttl_ms >= 60000 - passed_ms - 300;
        gate_close(g);
    }
    assert_true(is_whole);
}

static void a_later_settlement_without_the_scripts_is_no_failure(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    settle_later(g, (struct gate_seat){EVENT, 1, 5, 60000});
    freeReplyObject(beside_ask("SCRIPT|FLUSH"));
    settle_later(g, (struct gate_seat){EVENT, 2, 6, 60000});
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    assert_int_equal(beside_pttl("seat:{7}:2"), -2);
    settle_later(g, (struct gate_seat){EVENT, 3, 7, 60000});
    assert_string_equal(beside_get("seat:{7}:3"), "7");
    gate_close(g);
}

static void a_later_settlement_that_got_lost_fails_the_next_call(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct hf_fault fault = {0};
    settle_later(g, (struct gate_seat){EVENT, 1, 5, 60000});
    redis_server_pause(&gate_server);
    settle_later(g, (struct gate_seat){EVENT, 2, 6, 60000});
    redis_server_kill(&gate_server);
    enum hf_result result = gate_ping(g, &fault);
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
    assert_int_equal(fault.result, result);
    redis_server_again(&gate_server);
    beside_hang_up();
    settle_later(g, (struct gate_seat){EVENT, 3, 7, 60000});
    assert_string_equal(beside_get("seat:{7}:3"), "7"); /* it waited: the server is another one */
    gate_close(g);
}

/* A server that gives these answers, the last one after a pause, and nothing more, which no real
 * server does on demand. */
#define ANSWERS_MAX 4
#define TIME_ANSWER "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"
#define SETTLED_ANSWER ":1700000000000\r\n"
struct told_server {
    const char *answers[ANSWERS_MAX + 1]; /* up to NULL */
    long pause_ms;
    int listener;
    char url[64];
    pthread_t thread;
};

static void *answer_as_told(void *ctx)
{
    const struct told_server *s = ctx;
    int fd = accept(s->listener, NULL, NULL);
    char data[4096];
    for (size_t i = 0; s->answers[i] && read(fd, data, sizeof data) > 0; i++) {
        if (!s->answers[i + 1])
            nanosleep(&(struct timespec){.tv_nsec = 1000000 * s->pause_ms}, NULL);
        (void)!send(fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL); /* or it was left */
    }
    while (read(fd, data, sizeof data) > 0) {
    }
    close(fd);
    return NULL;
}

static void told_server_start(struct told_server *s)
{
    snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d", port_free(&s->listener));
    hf_check(pthread_create(&s->thread, NULL, answer_as_told, s) == 0);
}

/* After its clients have left. */
static void told_server_stop(struct told_server *s)
{
    shutdown(s->listener, SHUT_RDWR); /* if nobody came */
    pthread_join(s->thread, NULL);
    close(s->listener);
}

static void late_answers_get_no_second_timeout(void **state)
{
    (void)state;
    enum { TIMEOUT_MS = 300 };
    bool in_time = false;
    for (int i = 0; i < TRIES && !in_time; i++) {
        struct told_server s = {
            .answers = {"+PONG\r\n", TIME_ANSWER, SETTLED_ANSWER, SETTLED_ANSWER}, .pause_ms = 200};
        struct gate_seat seat = {EVENT, 1, 5, 60000};
        struct wish w;
        told_server_start(&s);
        struct gate *g = gate_at(s.url, TIMEOUT_MS);
        wish_seats(&w, 1);
        bool is_sent = gate_settle(g, token_of(1), &seat, 1, NULL, 0, NULL) == HF_DONE &&
                       gate_settle_later(g, token_of(1), &seat, 1, NULL, 0, NULL) == HF_DONE;
        int64_t begin_ms = gate_now_ms();
        assert_int_not_equal(gate_claim(g, token_of(1), &w.c, 1, NULL), HF_DONE);
        in_time = is_sent && gate_now_ms() - begin_ms <= TIMEOUT_MS + SLACK_MS;
        gate_close(g);
        told_server_stop(&s);
    }
    assert_true(in_time);
}

static void *resume_soon(void *ctx)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    redis_server_resume(&gate_server);
    return ctx;
}

static void an_entry_counts_from_the_call_that_had_to_wait(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    pthread_t thread;
    settle_later(g, (struct gate_seat){EVENT, 1, 5, 60000});
    redis_server_pause(&gate_server);
    settle_later(g, (struct gate_seat){EVENT, 2, 6, 60000});
    hf_check(pthread_create(&thread, NULL, resume_soon, NULL) == 0);
    int64_t begin_ms = gate_now_ms();
    settle_later(g, (struct gate_seat){EVENT, 3, 7, 60000});
    pthread_join(thread, NULL);
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    int64_t passed_ms = gate_now_ms() - begin_ms;
    assert_true(beside_pttl("seat:{7}:3") <= 60000 - passed_ms + 20);
    gate_close(g);
}

static void a_seat_is_freed_although_an_older_answer_was_lost(void **state)
{
    (void)state;
    struct gate *g = gate_here(), *other = gate_here();
    settle_later(g, (struct gate_seat){EVENT, 1, 5, 60000});
    redis_server_pause(&gate_server);
    settle_later(g, (struct gate_seat){EVENT, 2, 6, 60000});
    redis_server_kill(&gate_server);
    redis_server_again(&gate_server);
    beside_hang_up();
    settle_one(other, token_of(2), (struct gate_seat){EVENT, 1, 5, 60000}); /* it is filled again */
    settle_one(g, token_of(1), (struct gate_seat){EVENT, 1, 5, 0});
    assert_int_equal(beside_pttl("seat:{7}:1"), -2);
    gate_close(g);
    gate_close(other);
}

static void a_black_hole_costs_the_timeout_and_no_more(void **state)
{
    (void)state;
    int hole;
    char url[64];
    struct wish w;
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", port_free(&hole));
    assert_int_equal(listen(hole, TRIES + 1), 0); /* it accepts none of them */
    struct gate *g = gate_at(url, 0);
    bool in_time = false;
    for (int i = 0; i < TRIES && !in_time; i++) {
        struct hf_fault fault = {0};
        wish_seats(&w, 1);
        int64_t begin_ms = gate_now_ms();
        assert_int_equal(gate_claim(g, token_of(1), &w.c, 1, &fault), HF_UNREACHABLE);
        in_time = is_in_time(gate_now_ms() - begin_ms, GATE_TIMEOUT_MS);
        assert_non_null(strstr(fault.msg, "no answer within 250 ms"));
        assert_null(strstr(fault.msg, "s3cret"));
    }
    assert_true(in_time);
    close(hole);
    gate_close(g);
}

static void a_script_sent_again_gets_no_second_timeout(void **state)
{
    (void)state;
    enum { TIMEOUT_MS = 300 };
    bool in_time = false;
    for (int i = 0; i < TRIES && !in_time; i++) {
        struct told_server s = {.answers = {"+PONG\r\n", TIME_ANSWER, "-NOSCRIPT no\r\n"},
                                .pause_ms = 150};
        struct wish w;
        told_server_start(&s);
        struct gate *g = gate_at(s.url, TIMEOUT_MS);
        wish_seats(&w, 1);
        int64_t begin_ms = gate_now_ms();
        enum hf_result result = gate_claim(g, token_of(1), &w.c, 1, NULL);
        int64_t took_ms = gate_now_ms() - begin_ms;
        gate_close(g);
        told_server_stop(&s);
        in_time = is_in_time(took_ms, TIMEOUT_MS) && result == HF_UNKNOWN;
    }
    assert_true(in_time);
}

static void a_server_that_closes_the_link_raises_no_signal(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    wish_seats(&w, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gate_ping(g, NULL), HF_DONE);
        freeReplyObject(beside_ask("CLIENT|KILL|TYPE|normal|SKIPME|yes"));
        gate_claim(g, token_of(1), &w.c, 1, NULL); /* a SIGPIPE would end the test */
        assert_true(wish_granted(g, token_of(1), &w));
    }
    gate_close(g);
}

static void errors_about_urls_and_passwords_do_not_contain_the_password(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "redis://", "redis://s3cret@h",   "redis://:s3cret%@h", "http://:s3cret@h", "",
        "unix:",    "redis://:s3cret@h:x"};
    struct hf_fault fault;
    struct gate *g = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fault = (struct hf_fault){0};
        if (gate_open(bad[i], &clock_system, 0, &g, &fault) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
        assert_null(g);
        assert_int_equal(fault.result, HF_BAD_REQUEST);
        assert_non_null(strstr(fault.msg, "the Redis URL"));
        assert_null(strstr(fault.msg, "s3cret"));
    }
    gate_close(NULL);
    struct redis_server locked = {.password = "right"};
    assert_true(redis_server_start(&locked));
    char url[128];
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", locked.port);
    g = gate_at(url, GATE_PATIENT_MS);
    assert_int_equal(gate_ping(g, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    assert_null(strstr(fault.msg, "s3cret"));
    gate_close(g);
    snprintf(url, sizeof url, "redis://:right@127.0.0.1:%d/2", locked.port);
    g = gate_at(url, GATE_PATIENT_MS);
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    gate_close(g);
    redis_server_stop(&locked);
}

/* The rights that docs/reference.md lists, and no others. */
#define ACL_COMMANDS "+ping +select +evalsha +eval +mget +set +del +pttl +time +scan +unlink"

static void the_documented_rights_are_enough_and_each_is_needed(void **state)
{
    (void)state;
    struct redis_server s = {0};
    char url[96], command[256], answer[256];
    static const char *const each[] = {"evalsha", "eval", "mget", "set",   "del",
                                       "pttl",    "time", "scan", "unlink"};
    assert_true(redis_server_start(&s));
    snprintf(url, sizeof url, "redis://gate:s3cret@127.0.0.1:%d", s.port);
    for (size_t i = 0; i <= sizeof each / sizeof *each; i++) {
        bool all = i == sizeof each / sizeof *each;
        snprintf(command, sizeof command,
                 "ACL SETUSER gate reset on >s3cret ~seat:* ~area:* " ACL_COMMANDS "%s%s",
                 all ? "" : " -", all ? "" : each[i]);
        redis_server_ask(&s, command, answer, sizeof answer);
        assert_string_equal(answer, "+OK\r\n");
        redis_server_ask(&s, "SCRIPT FLUSH", answer, sizeof answer);
        redis_server_ask(&s, "FLUSHALL", answer, sizeof answer);
        redis_server_ask(&s, "SET seat:{7}:9 x", answer, sizeof answer);
        struct gate *g = gate_at(url, GATE_PATIENT_MS);
        struct seen seen = {0};
        struct gate_visitor visitor = seen_visitor(&seen);
        struct wish w;
        struct hf_fault fault = {0};
        int failed = 0;
        wish_seats(&w, 1, 2);
        failed += gate_claim(g, token_of(1), &w.c, 1, &fault) != HF_DONE;
        struct gate_seat seats[2] = {{EVENT, 1, 5, 60000}, {EVENT, 2, 0, 0}};
        failed += gate_settle(g, token_of(1), seats, 2, NULL, 0, &fault) != HF_DONE;
        failed += gate_scan(g, &visitor, &fault) != HF_DONE;
        failed += gate_drop(g, &(const char *){"seat:{7}:9"}, &(size_t){10}, 1, &fault) != HF_DONE;
        if (all ? failed > 0 : failed == 0)
            fail_msg("without %s: %d failed, %s", all ? "none" : each[i], failed, fault.msg);
        assert_true(all || fault.result == HF_UNREACHABLE || fault.result == HF_UNKNOWN);
        seen_close(&seen);
        gate_close(g);
    }
    redis_server_stop(&s);
}

static void a_full_server_refuses_whole_claims_and_is_not_used(void **state)
{
    (void)state;
    struct redis_server s = {0};
    char answer[256];
    struct hf_fault fault = {0};
    struct wish w;
    assert_true(redis_server_start(&s));
    struct gate *g = gate_at(s.url, GATE_PATIENT_MS);
    redis_server_ask(&s, "CONFIG SET maxmemory 1", answer, sizeof answer);
    wish_seats(&w, 1, 2, 3);
    assert_int_not_equal(gate_claim(g, token_of(1), &w.c, 1, &fault), HF_DONE);
    assert_non_null(strstr(fault.msg, "OOM"));
    redis_server_ask(&s, "DBSIZE", answer, sizeof answer);
    assert_string_equal(answer, ":0\r\n");
    redis_server_ask(&s, "INFO clients", answer, sizeof answer);
    assert_non_null(strstr(answer, "connected_clients:1\r\n")); /* this one: the gate has left */
    redis_server_ask(&s, "CONFIG SET maxmemory 0", answer, sizeof answer);
    assert_true(wish_granted(g, token_of(1), &w));
    gate_close(g);
    redis_server_stop(&s);
}

static void a_unix_socket_works_too(void **state)
{
    (void)state;
    struct gate *g = gate_at(gate_server.unix_url, GATE_PATIENT_MS);
    struct wish w;
    wish_seats(&w, 1);
    assert_true(wish_granted(g, token_of(1), &w));
    assert_string_equal(beside_get("seat:{7}:1"), CLAIM_OF_1);
    gate_close(g);
}

/* ---- many ---- */

static void a_thousand_claims_fit_in_one_call(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    enum { N = 1000 };
    struct wish *many = hf_alloc(N * sizeof *many);
    struct gate_claim *claims = hf_alloc(N * sizeof *claims);
    struct wish w;
    wish_seats(&w, 500, 501);
    assert_true(wish_granted(g, token_of(2), &w));
    for (uint32_t i = 0; i < N; i++) {
        wish_seats(&many[i], i, i + N);
        claims[i] = many[i].c;
    }
    assert_int_equal(gate_claim(g, token_of(1), claims, N, NULL), HF_DONE);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(gate_claim_granted(&claims[i]), i != 500 && i != 501);
    assert_int_equal(claims[500].taken[0], 500);
    assert_int_equal(beside_keys(), 2 * N - 2);
    assert_int_equal(gate_claim(g, token_of(1), NULL, 0, NULL), HF_DONE);
    free(claims);
    free(many);
    gate_close(g);
}

/* Threads that claim overlapping sets in random order.  `owner` is what they believe: with the gate
 * no thread ever finds a seat that another one owns, and no entry is left when all are done. */
#define CROWD 16
#define CROWD_SEATS 40
#define CROWD_ROUNDS 150

struct crowd {
    bool naive; /* reads, then writes: the twin without the gate */
    _Atomic int owner[CROWD_SEATS];
    _Atomic int doubles, grants, refusals;
};
struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
};

/* Reads whether the seats are free and sets them afterwards. */
static bool naive_claim(struct redis_link *k, const struct wish *w, int number)
{
    redisReply *replies[SEATS_MAX];
    char keys[SEATS_MAX][32], value[16];
    bool free_all = true;
    int len = snprintf(value, sizeof value, "%d", number);
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        int n = snprintf(keys[i], sizeof keys[i], "naive:%u", w->seats[i]);
        redis_put(k, (struct redis_arg[]){REDIS_ARG("GET"), {keys[i], (size_t)n}}, 2);
    }
    hf_check(redis_exchange(k, 0, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        free_all = free_all && replies[i]->type == REDIS_REPLY_NIL;
        freeReplyObject(replies[i]);
    }
    if (!free_all)
        return false;
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        redis_put(k,
                  (struct redis_arg[]){
                      REDIS_ARG("SET"), {keys[i], strlen(keys[i])}, {value, (size_t)len}},
                  3);
    hf_check(redis_exchange(k, 0, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        freeReplyObject(replies[i]);
    return true;
}

static void naive_free(struct redis_link *k, const struct wish *w)
{
    redisReply *replies[SEATS_MAX];
    char key[32];
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        int n = snprintf(key, sizeof key, "naive:%u", w->seats[i]);
        redis_put(k, (struct redis_arg[]){REDIS_ARG("DEL"), {key, (size_t)n}}, 2);
    }
    hf_check(redis_exchange(k, 0, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        freeReplyObject(replies[i]);
}

static void give_back(struct gate *g, const uint8_t *who, const struct wish *w)
{
    struct gate_seat seats[SEATS_MAX];
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        seats[i] = (struct gate_seat){.event = EVENT, .seat = w->seats[i]};
    hf_check(gate_settle(g, who, seats, w->c.n_seats, NULL, 0, NULL) == HF_DONE);
}

static void draw(struct random *random, struct wish *w)
{
    uint32_t seats[CROWD_SEATS];
    for (uint32_t i = 0; i < CROWD_SEATS; i++) {
        uint32_t at = (uint32_t)random_below(random, i + 1);
        seats[i] = seats[at];
        seats[at] = i;
    }
    wish_n(w, EVENT, seats, 1 + (uint32_t)random_below(random, 4));
}

static void *crowd_member(void *ctx)
{
    struct member *m = ctx;
    struct crowd *c = m->crowd;
    struct random random;
    struct redis_address address;
    struct redis_link link;
    struct gate *g = NULL;
    uint8_t who[GATE_TOKEN_SIZE];
    struct wish w;
    random_init_seeded(&random, test_seed(1) + (uint64_t)m->number);
    hf_check(redis_address_parse(gate_server.url, &address, NULL) == HF_DONE);
    redis_link_init(&link, &address, &clock_system, 10000);
    hf_check(gate_open(gate_server.url, &clock_system, 10000, &g, NULL) == HF_DONE);
    for (int round = 0; round < CROWD_ROUNDS; round++) {
        draw(&random, &w);
        random_bytes(&random, who, sizeof who);
        who[0] = (uint8_t)m->number;
        bool yes = c->naive
                       ? naive_claim(&link, &w, m->number)
                       : gate_claim(g, who, &w.c, 1, NULL) == HF_DONE && gate_claim_granted(&w.c);
        atomic_fetch_add(yes ? &c->grants : &c->refusals, 1);
        for (uint32_t i = 0; yes && i < w.c.n_seats; i++)
            if (atomic_exchange(&c->owner[w.seats[i]], m->number) != 0)
                atomic_fetch_add(&c->doubles, 1);
        hf_check(gate_ping(g, NULL) == HF_DONE); /* so that the seats are owned for a while */
        for (uint32_t i = 0; yes && i < w.c.n_seats; i++)
            if (atomic_exchange(&c->owner[w.seats[i]], 0) != m->number)
                atomic_fetch_add(&c->doubles, 1);
        if (yes && c->naive)
            naive_free(&link, &w);
        else if (yes)
            give_back(g, who, &w);
    }
    gate_close(g);
    redis_link_close(&link);
    redis_address_close(&address);
    return NULL;
}

static void crowd_run(struct crowd *c)
{
    struct member members[CROWD];
    for (int i = 0; i < CROWD; i++) {
        members[i] = (struct member){.crowd = c, .number = i + 1};
        hf_check(pthread_create(&members[i].thread, NULL, crowd_member, &members[i]) == 0);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(members[i].thread, NULL);
}

static void sixteen_threads_with_overlapping_claims_never_share_a_seat(void **state)
{
    (void)state;
    struct crowd c = {0};
    crowd_run(&c);
    assert_int_equal(c.doubles, 0);
    assert_true(c.grants > CROWD_ROUNDS);
    assert_true(c.refusals > 0);
    assert_int_equal(beside_keys(), 0); /* a part of a refused claim would stay for five seconds */
}

static void without_the_gate_they_share_seats(void **state)
{
    (void)state;
    struct crowd c = {.naive = true};
    for (int i = 0; i < 20 && c.doubles == 0; i++)
        crowd_run(&c);
    assert_true(c.doubles > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        gate_test(a_flush_between_claim_and_settle_does_no_harm),
        gate_test(lost_scripts_of_a_mixed_call_are_sent_again),
        gate_test(a_restart_is_survived_and_a_failure_reads_as_granted),
        gate_test(a_scan_of_a_large_server_ends_when_it_is_stopped),
        gate_test(a_server_that_hangs_costs_the_timeout_and_no_more),
        gate_test(a_settlement_that_is_executed_late_does_not_last_longer),
        gate_test(the_first_settlement_of_a_handle_does_not_last_longer),
        gate_test(a_later_settlement_waits_for_nobody),
        gate_test(an_answer_that_was_read_late_shortens_no_entry),
        gate_test(a_later_settlement_without_the_scripts_is_no_failure),
        gate_test(a_later_settlement_that_got_lost_fails_the_next_call),
        gate_test(late_answers_get_no_second_timeout),
        gate_test(an_entry_counts_from_the_call_that_had_to_wait),
        gate_test(a_seat_is_freed_although_an_older_answer_was_lost),
        gate_test(a_black_hole_costs_the_timeout_and_no_more),
        gate_test(a_script_sent_again_gets_no_second_timeout),
        gate_test(a_server_that_closes_the_link_raises_no_signal),
        gate_test(errors_about_urls_and_passwords_do_not_contain_the_password),
        gate_test(the_documented_rights_are_enough_and_each_is_needed),
        gate_test(a_full_server_refuses_whole_claims_and_is_not_used),
        gate_test(a_unix_socket_works_too),
        gate_test(a_thousand_claims_fit_in_one_call),
        gate_test(sixteen_threads_with_overlapping_claims_never_share_a_seat),
        gate_test(without_the_gate_they_share_seats),
    };
    return gate_tests_run("test_gate_trouble", tests, sizeof tests / sizeof *tests);
}
