/* The suite over the lock service of one real holdfastd, with access keys and a SQLite journal. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/holdfastd_server.h"

static struct holdfastd_server server = {.has_keys = true};

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "holdfast://" HOLDFASTD_ADMIN_KEY "@127.0.0.1:%d", port);
}

static void start(struct backend *b)
{
    assert_true(holdfastd_server_start(&server));
    b->port = server.port;
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "holdfast://127.0.0.1:99999", bad};
    b->bad_urls[1] = (struct bad_url){"no host", "holdfast://", bad};
    b->bad_urls[2] = (struct bad_url){"no second host", "holdfast://127.0.0.1,", bad};
    b->bad_urls[3] = (struct bad_url){"empty key", "holdfast://@127.0.0.1", bad};
    b->bad_urls[4] = (struct bad_url){"no such parameter", "holdfast://127.0.0.1?x=1", bad};
    b->bad_urls[5] = (struct bad_url){"too short a TTL", "holdfast://127.0.0.1?ttl=10ms", bad};
    b->bad_urls[6] = (struct bad_url){.what = "wrong key", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url, "holdfast://wrong@127.0.0.1:%d",
             b->port);
}

static void stop(struct backend *b)
{
    (void)b;
    holdfastd_server_stop(&server);
}

static void restart(struct backend *b)
{
    (void)b;
    holdfastd_server_kill(&server);
    holdfastd_server_again(&server);
}

int main(void)
{
    struct backend b = {.name = "holdfast",
                        .leases_survive_restart = true,
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .url_at = url_at,
                        .last_word = "/v1/locks/|/keepalive"};
    return conformance_run(&b);
}
