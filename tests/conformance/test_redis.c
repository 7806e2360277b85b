/* The suite over a real redis-server, with a password, without persistence, on a free port in a
 * directory of its own.  No redis-server is a failure. */
#include "conformance.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PASSWORD "pass:word/1"
#define PASSWORD_IN_URL "pass%3Aword%2F1"

static struct scratch dir;
static int server;

static redisContext *dial(struct backend *b)
{
    redisContext *c = redisConnectWithTimeout("127.0.0.1", b->port, (struct timeval){.tv_sec = 2});
    redisReply *reply = NULL;
    if (c && !c->err)
        reply = redisCommand(c, "AUTH %s", PASSWORD);
    bool ok = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    if (ok)
        return c;
    if (c)
        redisFree(c);
    return NULL;
}

static void launch(struct backend *b)
{
    char port[16];
    snprintf(port, sizeof port, "%d", b->port);
    const char *const argv[] = {
        "redis-server", "--port", port,           "--bind", "127.0.0.1",     "--dir",  dir.path,
        "--save",       "",       "--appendonly", "no",     "--requirepass", PASSWORD, "--loglevel",
        "warning",      NULL};
    server = process_start(argv, NULL);
    redisContext *c = NULL;
    int64_t end_ms = now_ms() + 10000;
    while (!(c = dial(b)) && now_ms() < end_ms)
        rest_ms(20);
    assert_non_null(c); /* is there a redis-server? */
    redisFree(c);
}

static void halt(void)
{
    kill(server, SIGTERM);
    process_wait(server);
}

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "redis://:%s@127.0.0.1:%d/3", PASSWORD_IN_URL, port);
}

static void start(struct backend *b)
{
    scratch_make(&dir);
    b->port = port_free(NULL);
    launch(b);
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "redis://127.0.0.1:99999", bad};
    b->bad_urls[1] = (struct bad_url){"port of letters", "redis://127.0.0.1:abc", bad};
    b->bad_urls[2] = (struct bad_url){"database of letters", "redis://127.0.0.1/x", bad};
    b->bad_urls[3] = (struct bad_url){"no path", "unix:", bad};
    b->bad_urls[4] = (struct bad_url){"nobody's path", "unix:/nonexistent/socket", refused};
    b->bad_urls[5] = (struct bad_url){.what = "wrong password", .results = refused};
    snprintf(b->bad_urls[5].url, sizeof b->bad_urls[5].url, "redis://:wrong@127.0.0.1:%d", b->port);
    b->bad_urls[6] = (struct bad_url){.what = "no password", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url, "redis://127.0.0.1:%d", b->port);
}

static void stop(struct backend *b)
{
    (void)b;
    halt();
    scratch_remove(&dir);
}

static void restart(struct backend *b)
{
    halt();
    launch(b);
}

static void flush(struct backend *b)
{
    redisContext *c = dial(b);
    assert_non_null(c);
    redisReply *reply = redisCommand(c, "FLUSHALL");
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    redisFree(c);
}

int main(void)
{
    struct backend b = {.name = "redis",
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .flush = flush,
                        .url_at = url_at};
    return conformance_run(&b);
}
