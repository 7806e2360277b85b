/* See lookup.h.  A lookup has two owners, the link and the thread; the one that leaves last frees
 * it. */
#include "redis/lookup.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/status.h"
#include "base/wait.h"

struct lookup {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_done;      /* the thread has the result */
    bool is_abandoned; /* the link does not wait for it any longer */
    int error;
    struct addrinfo *found; /* NULL: none, or the link has taken it */
    char *host;
    char port[16];
};

static void lookup_free(struct lookup *l)
{
    if (l->found)
        freeaddrinfo(l->found);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->mutex);
    free(l->host);
    free(l);
}

static int ask(const char *host, const char *port, int flags, struct addrinfo **ret)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(host, port, &want, ret);
}

static void *run(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo *found = NULL;
    int error = ask(l->host, l->port, 0, &found);
    pthread_mutex_lock(&l->mutex);
    l->error = error;
    l->found = error == 0 ? found : NULL;
    l->is_done = true;
    bool last = l->is_abandoned;
    pthread_cond_signal(&l->done);
    pthread_mutex_unlock(&l->mutex);
    if (last)
        lookup_free(l);
    return NULL;
}

/* Returns NULL if no thread can be started. */
static struct lookup *lookup_new(const char *host, const char *port)
{
    struct lookup *l = hf_alloc(sizeof *l);
    pthread_mutex_init(&l->mutex, NULL);
    wait_cond_init(&l->done);
    l->host = hf_strndup(host, strlen(host));
    snprintf(l->port, sizeof l->port, "%s", port);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool ok = pthread_create(&thread, &detached, run, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (!ok)
        lookup_free(l);
    return ok ? l : NULL;
}

int lookup_address(struct lookup **lookup, const char *host, int port, int64_t ms,
                   struct addrinfo **ret)
{
    char port_text[16];
    snprintf(port_text, sizeof port_text, "%d", port);
    if (!*lookup) {
        int error = ask(host, port_text, AI_NUMERICHOST, ret);
        if (error != EAI_NONAME)
            return error;
        *lookup = lookup_new(host, port_text);
        if (!*lookup)
            return EAI_MEMORY;
    }
    struct lookup *l = *lookup;
    int64_t until_us = wait_now_us() + 1000 * ms;
    pthread_mutex_lock(&l->mutex);
    while (!l->is_done && wait_cond_until(&l->done, &l->mutex, until_us))
        ;
    bool is_done = l->is_done;
    int error = is_done ? l->error : EAI_AGAIN;
    if (is_done && error == 0) {
        *ret = l->found;
        l->found = NULL;
    }
    pthread_mutex_unlock(&l->mutex);
    if (is_done) {
        lookup_free(l);
        *lookup = NULL;
    }
    return error;
}

void lookup_abandon(struct lookup *lookup)
{
    if (!lookup)
        return;
    pthread_mutex_lock(&lookup->mutex);
    lookup->is_abandoned = true;
    bool last = lookup->is_done;
    pthread_mutex_unlock(&lookup->mutex);
    if (last)
        lookup_free(lookup);
}
