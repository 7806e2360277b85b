/* A peer of the contended rows: the cost of libmicrohttpd when nothing is decided.  It has as many
 * threads as holdfastd, reads the whole body, as a server must that evaluates it, and answers with
 * constant bytes: 409 and a problem document of the given length.  It does not parse the body, and
 * has no view and no metrics.
 *
 *   bare THREADS BODY_LEN     prints `bare listening on http://127.0.0.1:PORT`; ends on SIGTERM */
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_LEN_MAX 65536
#define MEMORY_PER_CONNECTION 16384

struct request {
    size_t len, cap;
    char *body;
};

/* Created once and shared by all answers, since one response per request would cost more. */
static struct MHD_Response *answer;

static enum MHD_Result append(struct request *r, const char *data, size_t len)
{
    if (len > BODY_LEN_MAX - r->len)
        return MHD_NO;
    if (r->len + len > r->cap) {
        size_t cap = r->len + len < 1024 ? 1024 : BODY_LEN_MAX;
        char *body = realloc(r->body, cap);
        if (!body)
            return MHD_NO;
        r->body = body;
        r->cap = cap;
    }
    memcpy(r->body + r->len, data, len);
    r->len += len;
    return MHD_YES;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload_data,
                              size_t *upload_data_size, void **con_cls)
{
    (void)cls, (void)url, (void)method, (void)version;
    struct request *r = *con_cls;
    if (!r) {
        *con_cls = r = calloc(1, sizeof *r);
        return r ? MHD_YES : MHD_NO;
    }
    if (*upload_data_size) {
        enum MHD_Result ok = append(r, upload_data, *upload_data_size);
        *upload_data_size = 0;
        return ok;
    }
    return MHD_queue_response(connection, MHD_HTTP_CONFLICT, answer);
}

static void completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                      enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)connection, (void)why;
    struct request *r = *con_cls;
    if (r)
        free(r->body);
    free(r);
    *con_cls = NULL;
}

int main(int argc, char **argv)
{
    unsigned threads = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    size_t body_len = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (threads < 1 || threads > 64 || body_len < 1 || body_len > BODY_LEN_MAX) {
        fprintf(stderr, "usage: bare THREADS BODY_LEN\n");
        return 64;
    }
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    char *body = malloc(body_len);
    if (!body)
        return 1;
    memset(body, 'x', body_len);
    answer = MHD_create_response_from_buffer(body_len, body, MHD_RESPMEM_MUST_FREE);
    if (!answer ||
        MHD_add_response_header(answer, "Content-Type", "application/problem+json") != MHD_YES)
        return 1;

    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        &handle, NULL, MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_THREAD_POOL_SIZE, threads,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION,
        MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_CONNECTION_LIMIT, 16384u,
        MHD_OPTION_NOTIFY_COMPLETED, &completed, NULL, MHD_OPTION_END);
    if (!daemon) {
        fprintf(stderr, "bare: cannot listen on 127.0.0.1\n");
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("bare listening on http://127.0.0.1:%u\n", info ? (unsigned)info->port : 0);
    fflush(stdout);

    int signal_number;
    sigwait(&stop, &signal_number);
    MHD_stop_daemon(daemon);
    MHD_destroy_response(answer);
    return 0;
}
