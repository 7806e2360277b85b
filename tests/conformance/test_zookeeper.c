/* The suite over one real ZooKeeper, with digest authentication and a chroot. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/zookeeper_server.h"

#define USER "locks:pass%3Aword"

static struct zookeeper_server server;

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "zookeeper://%s@127.0.0.1:%d/a/b", USER, port);
}

static void start(struct backend *b)
{
    assert_true(zookeeper_server_start(&server)); /* is ZooKeeper installed? */
    b->port = server.port;
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "zookeeper://127.0.0.1:99999", bad};
    b->bad_urls[1] = (struct bad_url){"port of letters", "zookeeper://127.0.0.1:abc", bad};
    b->bad_urls[2] = (struct bad_url){"no host", "zookeeper://", bad};
    b->bad_urls[3] = (struct bad_url){"no second host", "zookeeper://127.0.0.1,", bad};
    b->bad_urls[4] = (struct bad_url){"no password", "zookeeper://user@127.0.0.1", bad};
    b->bad_urls[5] = (struct bad_url){"dots in the path", "zookeeper://127.0.0.1/a/../b", bad};
    b->bad_urls[6] = (struct bad_url){.what = "wrong password", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url, "zookeeper://locks:x@127.0.0.1:%d/a/b",
             b->port);
}

static void stop(struct backend *b)
{
    (void)b;
    zookeeper_server_stop(&server);
}

static void restart(struct backend *b)
{
    (void)b;
    zookeeper_server_kill(&server);
    zookeeper_server_again(&server);
}

int main(void)
{
    struct backend b = {.name = "zookeeper",
                        .leases_survive_restart = true,
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .url_at = url_at,
                        .last_word = "/@",
                        .in_turn = true};
    return conformance_run(&b);
}
