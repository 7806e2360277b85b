/* The suite over a real etcd of one member, with a password.  Without etcd it fails. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/etcd_server.h"

#define PASSWORD "pass:word/1"
#define PASSWORD_IN_URL "pass%3Aword%2F1"

static struct etcd_server server = {.password = PASSWORD};

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "etcd://root:%s@127.0.0.1:%d", PASSWORD_IN_URL, port);
}

static void start(struct backend *b)
{
    assert_true(etcd_server_start(&server)); /* is etcd installed? */
    b->port = server.port;
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "etcd://127.0.0.1:99999", bad};
    b->bad_urls[1] = (struct bad_url){"a path", "etcd://127.0.0.1:2379/x", bad};
    b->bad_urls[2] = (struct bad_url){"no host", "etcd://127.0.0.1,", bad};
    b->bad_urls[3] = (struct bad_url){"a parameter", "etcd://127.0.0.1?x=1", bad};
    b->bad_urls[4] = (struct bad_url){.what = "wrong password", .results = refused};
    snprintf(b->bad_urls[4].url, sizeof b->bad_urls[4].url, "etcd://root:wrong@127.0.0.1:%d",
             b->port);
    b->bad_urls[5] = (struct bad_url){.what = "no password", .results = refused};
    snprintf(b->bad_urls[5].url, sizeof b->bad_urls[5].url, "etcd://127.0.0.1:%d", b->port);
    b->bad_urls[6] = (struct bad_url){.what = "no TLS there", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url, "etcds://root:x@127.0.0.1:%d", b->port);
}

static void stop(struct backend *b)
{
    (void)b;
    etcd_server_stop(&server);
}

static void restart(struct backend *b)
{
    (void)b;
    etcd_server_kill(&server);
    etcd_server_again(&server, true);
}

int main(void)
{
    struct backend b = {.name = "etcd",
                        .leases_survive_restart = true,
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .url_at = url_at,
                        .last_word = "/v3/kv/txn|/v3/lease/revoke"};
    return conformance_run(&b);
}
