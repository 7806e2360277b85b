/* See inbox.h. */
#include "http/inbox.h"

#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/request.h"

void inbox_wake(struct loop_inbox *b)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&b->woken, true))
        (void)!write(b->wake_fd, &one, sizeof one);
}

static void wake(struct waker *waker)
{
    inbox_wake((struct loop_inbox *)((char *)waker - offsetof(struct loop_inbox, waker)));
}

bool inbox_open(struct loop_inbox *b)
{
    b->waker.wake = wake;
    b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return b->wake_fd >= 0;
}

void inbox_close(struct loop_inbox *b)
{
    if (b->wake_fd >= 0)
        (void)close(b->wake_fd);
}

void inbox_awake(struct loop_inbox *b)
{
    uint64_t count;
    (void)!read(b->wake_fd, &count, sizeof count);
    /* An exchange, so that whatever was pushed by a thread that found the loop woken already is
     * seen now. */
    (void)atomic_exchange(&b->woken, false);
}

void inbox_put_done(struct loop_inbox *b, struct request *r)
{
    struct request *first = atomic_load_explicit(&b->done, memory_order_relaxed);
    do
        r->next = first;
    while (!atomic_compare_exchange_weak_explicit(&b->done, &first, r, memory_order_release,
                                                  memory_order_relaxed));
    pending_wake(&b->waker); /* `r` may be gone by now, the loop is not */
}

struct request *inbox_take_done(struct loop_inbox *b)
{
    struct request *r = atomic_exchange_explicit(&b->done, NULL, memory_order_acquire);
    struct request *in_order = NULL;
    while (r) { /* the last one that was done is the first in the list */
        struct request *next = r->next;
        r->next = in_order;
        in_order = r;
        r = next;
    }
    return in_order;
}

void inbox_put_arrived(struct loop_inbox *b, struct conn *c)
{
    struct conn *first = atomic_load_explicit(&b->arrived, memory_order_relaxed);
    do
        c->next = first;
    while (!atomic_compare_exchange_weak_explicit(&b->arrived, &first, c, memory_order_release,
                                                  memory_order_relaxed));
}

struct conn *inbox_take_arrived(struct loop_inbox *b)
{
    return atomic_exchange_explicit(&b->arrived, NULL, memory_order_acquire);
}
