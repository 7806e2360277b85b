/* See proxy.h.  One thread polls all connections. */
#include "support/proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"

static void pair_accept(struct proxy *p)
{
    int client = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atomic_load(&p->target_port)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (client < 0 || p->n_pairs == PROXY_PAIRS_MAX ||
        connect(server, (struct sockaddr *)&to, sizeof to) != 0) {
        close(client);
        close(server);
        return;
    }
    p->pairs[p->n_pairs].deaf = false;
    p->pairs[p->n_pairs].client = client;
    p->pairs[p->n_pairs].has_word = false;
    p->pairs[p->n_pairs].awaits = false;
    p->pairs[p->n_pairs].was_held = false;
    p->pairs[p->n_pairs].client_gone = false;
    p->pairs[p->n_pairs++].server = server;
}

static void pair_close(struct proxy *p, int i)
{
    close(p->pairs[i].client);
    close(p->pairs[i].server);
    p->pairs[i] = p->pairs[--p->n_pairs];
}

/* Do the bytes contain one of the words, which are separated by '|'? */
static bool has_word(const char *bytes, size_t n, const char *words)
{
    for (;; words++) {
        size_t len = strcspn(words, "|");
        if (memmem(bytes, n, words, len))
            return true;
        words += len;
        if (!*words)
            return false;
    }
}

/* Reads the next request alone.  What begins with no length of a request is read as it comes. */
static ssize_t read_request(int fd, char *ret, size_t size)
{
    uint32_t len;
    if (recv(fd, &len, sizeof len, MSG_PEEK | MSG_WAITALL) != sizeof len ||
        ntohl(len) > size - sizeof len)
        return read(fd, ret, size);
    return recv(fd, ret, sizeof len + ntohl(len), MSG_WAITALL);
}

/* Returns false if the pair must be closed. */
static bool pass(struct proxy *p, int i, bool is_answer)
{
    int from = is_answer ? p->pairs[i].server : p->pairs[i].client;
    int to = is_answer ? p->pairs[i].client : p->pairs[i].server;
    char bytes[16384];
    if (!is_answer && atomic_load(&p->mode) == PROXY_HOLD)
        return true; /* it stays where it is */
    bool is_alone = !is_answer && atomic_load(&p->in_turn);
    ssize_t n =
        is_alone ? read_request(from, bytes, sizeof bytes) : read(from, bytes, sizeof bytes);
    p->pairs[i].awaits = is_alone;
    if (n <= 0) {
        p->pairs[i].client_gone = true;
        return !is_answer && p->pairs[i].was_held;
    }
    if (is_answer && p->pairs[i].client_gone) {
        atomic_fetch_add(&p->cuts, 1);
        return false;
    }
    int mode = atomic_load(&p->mode);
    const char *word = atomic_load(&p->word);
    if (!is_answer)
        p->pairs[i].has_word = word && has_word(bytes, (size_t)n, word);
    if (is_answer && mode == PROXY_SWALLOW_ONCE && (!word || p->pairs[i].has_word)) {
        atomic_store(&p->mode, PROXY_PASS);
        p->pairs[i].deaf = true;
    }
    if (p->pairs[i].deaf)
        mode = PROXY_SWALLOW;
    if (is_answer && mode != PROXY_PASS && (!word || p->pairs[i].deaf || p->pairs[i].has_word)) {
        atomic_fetch_add(&p->cuts, 1);
        return mode == PROXY_SWALLOW;
    }
    for (ssize_t done = 0, k; done < n; done += k)
        if ((k = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

static void *proxy_run(void *arg)
{
    struct proxy *p = arg;
    while (!atomic_load(&p->stop)) {
        struct pollfd fds[1 + 2 * PROXY_PAIRS_MAX];
        int n = p->n_pairs;
        bool held = atomic_load(&p->mode) == PROXY_HOLD;
        fds[0] = (struct pollfd){.fd = p->listen_fd, .events = POLLIN};
        for (int i = 0; i < n; i++) {
            bool deaf = p->pairs[i].client_gone || p->pairs[i].awaits || held;
            fds[1 + 2 * i] =
                (struct pollfd){.fd = deaf ? -1 : p->pairs[i].client, .events = POLLIN};
            p->pairs[i].was_held |= held;
            fds[2 + 2 * i] = (struct pollfd){.fd = p->pairs[i].server, .events = POLLIN};
        }
        poll(fds, 1 + 2 * (nfds_t)n, 20);
        for (int i = n;
             i-- > 0;) { /* from the end, since closing a pair moves the last one into its place */
            bool open = true;
            if (fds[1 + 2 * i].revents)
                open = pass(p, i, false);
            if (open && fds[2 + 2 * i].revents)
                open = pass(p, i, true);
            if (!open)
                pair_close(p, i);
        }
        if (fds[0].revents)
            pair_accept(p);
    }
    while (p->n_pairs > 0)
        pair_close(p, 0);
    return NULL;
}

void proxy_start(struct proxy *p, int target_port)
{
    *p = (struct proxy){0};
    atomic_store(&p->target_port, target_port);
    p->port = port_free(&p->listen_fd);
    hf_check(pthread_create(&p->thread, NULL, proxy_run, p) == 0);
}

void proxy_stop(struct proxy *p)
{
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    close(p->listen_fd);
}
