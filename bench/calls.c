/* Calls of the API by hand, as fast as they go: what the clients are measured beside.
 *
 *   build/bench/calls URL read|refused EVENT SECONDS THREADS
 *
 * Each thread makes one call after the other with plain libcurl, on a connection of its own.
 * calls.mjs and calls.py make the same calls through the clients.  One line of JSON goes to stdout.
 * The program exits with 1 if an answer is not the expected one. */
#include <pthread.h>

#include "leases_curl.h"

#define SECONDS_MAX 60
#define THREADS_MAX 64

struct caller {
    pthread_t thread;
    const char *url;
    const struct buf *body; /* empty: the call reads */
    const char *path;
    int64_t until_ns;
    int64_t n;
};

static void *call(void *ctx)
{
    struct caller *c = ctx;
    struct hand_curl http = {0};
    const bool reads = c->body->len == 0;
    hand_curl_init(&http, c->url);
    for (; now_ns() < c->until_ns; c->n++) {
        long status =
            reads ? hand_curl_get(&http, c->path) : hand_curl_post(&http, c->path, c->body);
        if (status != (reads ? 200 : 409))
            die("not the answer that was to be measured");
    }
    hand_curl_cleanup(&http);
    return NULL;
}

int main(int argc, char **argv)
{
    const int seconds = argc == 6 ? atoi(argv[4]) : 0, n_threads = argc == 6 ? atoi(argv[5]) : 0;
    if (seconds < 1 || seconds > SECONDS_MAX || n_threads < 1 || n_threads > THREADS_MAX)
        die("usage: calls URL read|refused EVENT SECONDS THREADS");
    struct caller callers[THREADS_MAX] = {0};
    struct buf body = {0};
    char path[128] = "/v1/holds";
    if (strcmp(argv[2], "read") == 0)
        snprintf(path, sizeof path, "/v1/events/%s", argv[3]);
    else
        buf_printf(&body, "{\"event\":\"%s\",\"seats\":[\"S1-A-1\"]}", argv[3]);
    curl_global_init(CURL_GLOBAL_DEFAULT);

    const int64_t begun_ns = now_ns();
    const double cpu_before_us = cpu_us();
    int64_t n = 0;
    for (int i = 0; i < n_threads; i++) {
        callers[i] = (struct caller){.url = argv[1], .body = &body, .path = path};
        callers[i].until_ns = begun_ns + seconds * INT64_C(1000000000);
        if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0)
            die("pthread_create");
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(callers[i].thread, NULL);
        n += callers[i].n;
    }
    printf("{\"requests\":%lld,\"per_second\":%.0f,\"cpu_us\":%.2f}\n", (long long)n,
           1e9 * (double)n / (double)(now_ns() - begun_ns), (cpu_us() - cpu_before_us) / (double)n);
    buf_close(&body);
    return 0;
}
