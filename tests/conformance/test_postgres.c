/* The suite over a real PostgreSQL, in a cluster and a database of its own.  Restarts are kills: a
 * lease that was acknowledged is there afterwards.  Without PostgreSQL it fails. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/postgres_server.h"

static char database[32];

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    (void)snprintf(ret, size, "postgresql://holdfast:pass%%3Aword@127.0.0.1:%d/%s", port, database);
}

static void start(struct backend *b)
{
    char url[POSTGRES_URL_SIZE];
    postgres_server_fresh(url);
    (void)snprintf(database, sizeof database, "%s", strrchr(url, '/') + 1);
    b->port = postgres_server_own()->port;
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"an unknown parameter", "postgres://127.0.0.1/x?y=z", bad};
    b->bad_urls[1] = (struct bad_url){"an open bracket", "postgres://[::1/x", bad};
    b->bad_urls[2] = (struct bad_url){"nobody's port", "postgres://127.0.0.1:1/x", refused};
    b->bad_urls[3] = (struct bad_url){.what = "no such database", .results = refused};
    (void)snprintf(b->bad_urls[3].url, sizeof b->bad_urls[3].url,
                   "postgres://holdfast@127.0.0.1:%d/nothing", b->port);
    b->bad_urls[4] = (struct bad_url){.what = "no such user", .results = refused};
    (void)snprintf(b->bad_urls[4].url, sizeof b->bad_urls[4].url,
                   "postgres://nobody@127.0.0.1:%d/%s", b->port, database);
}

static void stop(struct backend *b) { (void)b; }

static void restart(struct backend *b)
{
    (void)b;
    postgres_server_kill(postgres_server_own());
    postgres_server_again(postgres_server_own());
}

int main(void)
{
    struct backend b = {.name = "postgres",
                        .leases_survive_restart = true,
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .url_at = url_at,
                        .last_word = "COMMIT"};
    return conformance_run(&b);
}
