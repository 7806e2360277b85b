/* The lab's throwaway coordinators: each kind starts, breaks as it is told to, and leaves nothing
 * behind.  What is stored is written and read by the servers' own clients. */
#include "support/fixtures.h"

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/coordinators.h"

static struct servers home;

static int open_home(void **state)
{
    (void)state;
    struct hf_err err;
    return servers_open(&home, &err) ? 0 : -1;
}

static int close_home(void **state)
{
    (void)state;
    char dir[sizeof home.dir];
    memcpy(dir, home.dir, sizeof dir);
    servers_close(&home);
    return access(dir, F_OK) == 0 ? -1 : 0;
}

static void start(struct coordinator *c, enum coordinator_kind kind, bool has_steps)
{
    struct hf_err err = {0};
    char why[COORDINATOR_WHY_SIZE];
    if (!coordinator_is_installed(kind, why))
        skip();
    bool good = coordinator_open(c, &home, kind, has_steps, &err);
    if (!good)
        fail_msg("%s", err.msg);
}

static void restart(struct coordinator *c, size_t node, bool is_empty)
{
    struct hf_err err = {0};
    if (!coordinator_restart(c, node, is_empty, &err))
        fail_msg("%s", err.msg);
}

/* Sends a command to a port; the answer as text, "" if there is none in time. */
static const char *ask_redis(int port, const char *command, struct timeval patience, char ret[64])
{
    redisContext *c = redisConnectWithTimeout("127.0.0.1", port, patience);
    assert_non_null(c);
    redisReply *reply = NULL;
    if (!c->err && redisSetTimeout(c, patience) == REDIS_OK)
        reply = redisCommand(c, command);
    ret[0] = '\0';
    if (reply && reply->type == REDIS_REPLY_NIL)
        (void)snprintf(ret, 64, "nil");
    else if (reply && reply->type == REDIS_REPLY_ARRAY)
        (void)snprintf(ret, 64, "%.60s", reply->element[0]->str);
    else if (reply && reply->str)
        (void)snprintf(ret, 64, "%.60s", reply->str);
    freeReplyObject(reply);
    redisFree(c);
    return ret;
}

static const char *redis(int port, const char *command, char ret[64])
{
    return ask_redis(port, command, (struct timeval){.tv_sec = 60}, ret);
}

static void assert_silent(int port)
{
    char text[64];
    assert_string_equal(ask_redis(port, "PING", (struct timeval){.tv_usec = 300000}, text), "");
}

static void redis_keeps_its_data_through_kill_9_and_loses_it_when_told_to(void **state)
{
    (void)state;
    struct coordinator c = {0};
    char text[64];
    start(&c, COORDINATOR_REDIS, false);
    int port = c.nodes[0].port;
    assert_string_equal(redis(port, "SET a 1", text), "OK");
    coordinator_kill(&c, 0);
    assert_silent(port);
    restart(&c, 0, false);
    assert_string_equal(redis(port, "GET a", text), "1");
    coordinator_kill(&c, 0);
    restart(&c, 0, true);
    assert_string_equal(redis(port, "GET a", text), "nil");
    coordinator_close(&c);
}

static void a_relay_counts_falls_silent_and_closes(void **state)
{
    (void)state;
    struct coordinator c = {0};
    char text[64];
    start(&c, COORDINATOR_REDIS, false);
    int port = relay_port(c.nodes[0].relay);
    assert_string_equal(redis(port, "PING", text), "PONG");
    struct relay_count count = coordinator_count(&c);
    assert_int_equal(count.messages, 2); /* a request and an answer */
    assert_true(count.bytes > 10 && count.bytes < 100);
    coordinator_set_relays(&c, RELAY_SILENT);
    assert_silent(port);
    coordinator_set_relays(&c, RELAY_PASS);
    assert_string_equal(redis(port, "PING", text), "PONG");
    coordinator_set_relays(&c, RELAY_CLOSED);
    assert_silent(port);
    coordinator_set_relays(&c, RELAY_PASS);
    assert_string_equal(redis(port, "PING", text), "PONG");
    coordinator_close(&c);
}

static void three_servers_have_three_clocks(void **state)
{
    (void)state;
    struct coordinator c = {0};
    struct hf_err err;
    char why[COORDINATOR_WHY_SIZE], text[64];
    if (!coordinator_has_steps(COORDINATOR_REDLOCK, why))
        skip();
    start(&c, COORDINATOR_REDLOCK, true);
    assert_int_equal(c.n_nodes, 3);
    assert_true(coordinator_step_clock(&c, 1, 3600, &err));
    assert_true(coordinator_step_clock(&c, 2, -3600, &err));
    long long t[3];
    for (int i = 0; i < 3; i++)
        t[i] = strtoll(redis(c.nodes[i].port, "TIME", text), NULL, 10);
    assert_true(t[1] - t[0] > 3500 && t[1] - t[0] < 3700);
    assert_true(t[0] - t[2] > 3500 && t[0] - t[2] < 3700);
    coordinator_close(&c);
}

/* Runs a statement; its first value, "" if there is none. */
static const char *sql(const char *url, const char *text, char ret[64])
{
    PGconn *db = PQconnectdb(url);
    for (int i = 0; PQstatus(db) != CONNECTION_OK && i < 30; i++)
        PQreset(db); /* it may stand still for longer than the URL's connect_timeout */
    PGresult *result = PQexec(db, text);
    ret[0] = '\0';
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
        (void)snprintf(ret, 64, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(db);
    return ret;
}

static void postgres_restarts_with_and_without_its_data_and_its_clock_moves(void **state)
{
    (void)state;
    struct coordinator c = {0};
    struct hf_err err;
    char why[COORDINATOR_WHY_SIZE], text[64];
    bool steps = coordinator_has_steps(COORDINATOR_POSTGRES, why);
    start(&c, COORDINATOR_POSTGRES, steps);
    (void)sql(c.relayed_url, "CREATE TABLE t AS SELECT 7 AS v", text);
    if (steps) {
        double before = strtod(sql(c.url, "SELECT extract(epoch FROM now())", text), NULL);
        assert_true(coordinator_step_clock(&c, 0, -3600, &err));
        double after = strtod(sql(c.url, "SELECT extract(epoch FROM now())", text), NULL);
        assert_true(before - after > 3500 && before - after < 3700);
    }
    coordinator_kill(&c, 0);
    restart(&c, 0, false);
    assert_string_equal(sql(c.url, "SELECT v FROM t", text), "7");
    coordinator_kill(&c, 0);
    restart(&c, 0, true);
    assert_string_equal(sql(c.url, "SELECT v FROM t", text), "");
    coordinator_close(&c);
}

static void comes_and_goes(enum coordinator_kind kind)
{
    struct coordinator c = {0};
    start(&c, kind, false);
    pid_t first = c.nodes[0].pid;
    assert_true(c.version[0] >= '1' && c.version[0] <= '9');
    coordinator_kill(&c, 0);
    assert_int_equal(kill(first, 0), -1);
    restart(&c, 0, false);
    coordinator_kill(&c, 0);
    restart(&c, 0, true);
    assert_true(c.nodes[0].pid > 0 && c.nodes[0].pid != first);
    coordinator_close(&c);
}

static void etcd_comes_and_goes(void **state)
{
    (void)state;
    comes_and_goes(COORDINATOR_ETCD);
}

static void zookeeper_comes_and_goes(void **state)
{
    (void)state;
    comes_and_goes(COORDINATOR_ZOOKEEPER);
}

static void the_clock_of_a_go_server_cannot_be_stepped(void **state)
{
    (void)state;
    char why[COORDINATOR_WHY_SIZE] = "";
    assert_false(coordinator_has_steps(COORDINATOR_ETCD, why));
    assert_string_equal(why, "a Go server's clock cannot be stepped from outside");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_keeps_its_data_through_kill_9_and_loses_it_when_told_to),
        cmocka_unit_test(a_relay_counts_falls_silent_and_closes),
        cmocka_unit_test(three_servers_have_three_clocks),
        cmocka_unit_test(postgres_restarts_with_and_without_its_data_and_its_clock_moves),
        cmocka_unit_test(etcd_comes_and_goes),
        cmocka_unit_test(zookeeper_comes_and_goes),
        cmocka_unit_test(the_clock_of_a_go_server_cannot_be_stepped),
    };
    return cmocka_run_group_tests(tests, open_home, close_home);
}
