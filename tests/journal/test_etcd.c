/* The suite over a real etcd of one member.  Restarts are kills.  Claims about etcd alone are in
 * tests/integration/test_journal_etcd.c.  Without etcd it fails. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "cell/journal_etcd.h"
#include "etcd/base64.h"
#include "support/etcd_server.h"

static struct etcd_server server;

static void url_at(struct engine *e, int port, char *ret, size_t size)
{
    (void)e;
    (void)snprintf(ret, size, "etcd://127.0.0.1:%d", port);
}

static void start(struct engine *e)
{
    assert_true(etcd_server_start(&server)); /* is etcd installed? */
    e->port = server.port;
    url_at(e, e->port, e->url, sizeof e->url);
}

static void stop(struct engine *e)
{
    (void)e;
    etcd_server_stop(&server);
}

static void fresh(struct engine *e)
{
    char answer[512];
    (void)e;
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/deleterange",
                                     "{\"key\":\"AA==\",\"range_end\":\"AA==\"}", answer,
                                     sizeof answer),
                     200);
}

static void restart(struct engine *e)
{
    (void)e;
    etcd_server_kill(&server);
    etcd_server_again(&server, true);
}

static void freeze(struct engine *e, bool frozen)
{
    (void)e;
    if (frozen)
        etcd_server_pause(&server);
    else
        etcd_server_resume(&server);
}

static int64_t count_chunks(struct engine *e)
{
    (void)e;
    static const char from[] = "holdfast-cell/chunk/", to[] = "holdfast-cell/chunk0";
    char answer[1024];
    struct buf body = {0};
    buf_lit(&body, "{\"count_only\":true,\"key\":\"");
    base64_put(&body, from, sizeof from - 1);
    buf_lit(&body, "\",\"range_end\":\"");
    base64_put(&body, to, sizeof to - 1);
    buf_put(&body, "\"}", 3);
    int status = etcd_server_ask(&server, "/v3/kv/range", body.data, answer, sizeof answer);
    buf_close(&body);
    assert_int_equal(status, 200);
    json_t *json = json_loads(answer, 0, NULL);
    assert_non_null(json);
    int64_t n = etcd_number(json, "count");
    json_decref(json);
    return n;
}

int main(void)
{
    struct engine e = {.driver = &journal_etcd,
                       .start = start,
                       .stop = stop,
                       .fresh = fresh,
                       .restart = restart,
                       .freeze = freeze,
                       .url_at = url_at,
                       .count_chunks = count_chunks,
                       .n_entries = 2500};
    return suite_run(&e);
}
