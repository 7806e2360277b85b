/* The queue between threads.  One mutex, held for pointer work only; a sleeper is woken only when
 * there is one, so a busy worker costs its callers no system call. */
#include "engine/lane.h"

#include "base/wait.h"

void lane_init(struct lane *lane, size_t len_max)
{
    *lane = (struct lane){.len_max = len_max};
    lane->tail = &lane->head;
    pthread_mutex_init(&lane->lock, NULL);
    wait_cond_init(&lane->wake);
}

void lane_close(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->closed = true;
    pthread_cond_broadcast(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
}

void lane_destroy(struct lane *lane)
{
    pthread_mutex_destroy(&lane->lock);
    pthread_cond_destroy(&lane->wake);
}

static void append(struct lane *lane, struct command *command)
{
    command->next = NULL;
    *lane->tail = command;
    lane->tail = &command->next;
    lane->len++;
    if (lane->waiting)
        pthread_cond_signal(&lane->wake);
}

enum hf_status lane_put(struct lane *lane, struct command *command)
{
    enum hf_status status = HF_OK;
    pthread_mutex_lock(&lane->lock);
    if (lane->closed)
        status = HF_DRAINING;
    else if (lane->len >= lane->len_max)
        status = HF_OVERLOADED;
    else
        append(lane, command);
    pthread_mutex_unlock(&lane->lock);
    return status;
}

bool lane_pass(struct lane *lane, struct command *command)
{
    pthread_mutex_lock(&lane->lock);
    bool open = !lane->closed;
    if (open)
        append(lane, command);
    pthread_mutex_unlock(&lane->lock);
    return open;
}

/* Called with the lock held. */
static void wait_for_one(struct lane *lane, int64_t timeout_us)
{
    int64_t until_us = wait_now_us() + timeout_us;
    lane->waiting++;
    while (!lane->head && !lane->closed)
        if (!wait_cond_until(&lane->wake, &lane->lock, until_us))
            break;
    lane->waiting--;
}

size_t lane_take(struct lane *lane, struct command **ret, size_t max, int64_t timeout_us)
{
    size_t n = 0;
    pthread_mutex_lock(&lane->lock);
    if (!lane->head && !lane->closed && timeout_us > 0)
        wait_for_one(lane, timeout_us);
    for (; n < max && lane->head; n++) {
        ret[n] = lane->head;
        lane->head = lane->head->next;
    }
    if (!lane->head)
        lane->tail = &lane->head;
    lane->len -= n;
    if (!n && lane->closed)
        n = LANE_CLOSED;
    pthread_mutex_unlock(&lane->lock);
    return n;
}

size_t lane_len(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    size_t len = lane->len;
    pthread_mutex_unlock(&lane->lock);
    return len;
}
