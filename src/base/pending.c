/* See pending.h.  A batch belongs to the thread that began it. */
#include "base/pending.h"

#include <stdbool.h>

#define WAKERS_MAX 64 /* any further ones are woken at once */

static _Thread_local struct {
    bool begun;
    size_t n;
    struct waker *wakers[WAKERS_MAX];
} batch;

void pending_wake(struct waker *waker)
{
    for (size_t i = 0; i < batch.n; i++)
        if (batch.wakers[i] == waker)
            return;
    if (batch.begun && batch.n < WAKERS_MAX)
        batch.wakers[batch.n++] = waker;
    else
        waker->wake(waker);
}

void pending_batch_begin(void) { batch.begun = true; }

void pending_batch_end(void)
{
    for (size_t i = 0; i < batch.n; i++)
        batch.wakers[i]->wake(batch.wakers[i]);
    batch.n = 0;
    batch.begun = false;
}
