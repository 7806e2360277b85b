/* The suite over three real redis-servers with a password and without persistence.  Where the suite
 * needs one server whose answers it can withhold, the first stands at the port that it chooses and
 * the third is down, so that nothing can be done without the first. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/redis_server.h"

#define PASSWORD "pass:word/1"
#define PASSWORD_IN_URL "pass%3Aword%2F1"
#define MAX_TTL "max_ttl=120s" /* the suite's longest TTL */

static struct redis_server servers[3] = {
    {.password = PASSWORD}, {.password = PASSWORD}, {.password = PASSWORD}};
static int closed_port;

static void ask(const struct redis_server *s, const char *command)
{
    char answer[64];
    redis_server_ask(s, command, answer, sizeof answer);
    assert_string_equal(answer, "+OK\r\n");
}

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "redlock://:%s@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?" MAX_TTL "&db=3",
             PASSWORD_IN_URL, port, servers[1].port, closed_port);
}

static void start(struct backend *b)
{
    for (int i = 0; i < 3; i++) {
        assert_true(redis_server_start(&servers[i])); /* is redis-server installed? */
        /* They are new: nobody can hold a lock there. */
        ask(&servers[i], "EVAL \"redis.call('SELECT', 3) "
                         "return redis.call('SET', 'holdfast:redlock:vouched', 1, 'EX', 60)\" 0");
    }
    closed_port = port_free(NULL);
    b->port = servers[0].port;
    const int *p[] = {&servers[0].port, &servers[1].port, &servers[2].port};
    snprintf(b->url, sizeof b->url,
             "redlock://:%s@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?" MAX_TTL "&db=3",
             PASSWORD_IN_URL, *p[0], *p[1], *p[2]);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "redlock://a:1,b:1,c:99999", bad};
    b->bad_urls[1] = (struct bad_url){"two servers", "redlock://a:1,b:1", bad};
    b->bad_urls[2] = (struct bad_url){"a server twice", "redlock://a:1,b:1,a:1", bad};
    b->bad_urls[3] = (struct bad_url){"no time", "redlock://a,b,c?max_ttl=soon", bad};
    b->bad_urls[4] = (struct bad_url){"database of letters", "redlock://a,b,c?db=x", bad};
    b->bad_urls[5] = (struct bad_url){.what = "wrong password", .results = refused};
    snprintf(b->bad_urls[5].url, sizeof b->bad_urls[5].url,
             "redlock://:wrong@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", *p[0], *p[1], *p[2]);
    b->bad_urls[6] = (struct bad_url){.what = "no password", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url,
             "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", *p[0], *p[1], *p[2]);
}

static void stop(struct backend *b)
{
    (void)b;
    for (int i = 0; i < 3; i++)
        redis_server_stop(&servers[i]);
}

/* A grant needs two of them, and one that is kept from running may have missed it.  A renewal puts
 * the lease there. */
static bool is_stored(struct backend *b, const char *key)
{
    (void)b;
    bool all = true;
    for (int i = 0; i < 2; i++) {
        char command[256], answer[64];
        snprintf(command, sizeof command,
                 "EVAL \"redis.call('SELECT', 3) "
                 "return redis.call('EXISTS', 'holdfast:{%s}:redlock')\" 0",
                 key);
        redis_server_ask(&servers[i], command, answer, sizeof answer);
        all = all && strcmp(answer, ":1\r\n") == 0;
    }
    return all;
}

/* One of them forgets everything; from then on it has no vote. */
static void restart(struct backend *b)
{
    (void)b;
    redis_server_kill(&servers[2]);
    redis_server_again(&servers[2]);
}

int main(void)
{
    struct backend b = {.name = "redlock",
                        .leases_survive_restart = true,
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .is_stored = is_stored,
                        .url_at = url_at};
    return conformance_run(&b);
}
