/* See link.h.  This file exchanges commands for answers; link_parts.h says what is below it.
 *
 * Cost: an exchange on an open link is one send and one recv. */
#include "redis/link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/wait.h"
#include "redis/link_parts.h"

#define IDLE_US 100000 /* after this the link checks whether the server has closed it */
#define OUT_KEPT_MAX 65536

void redis_link_init(struct redis_link *k, const struct redis_address *address,
                     const struct clock *clock, int64_t timeout_ms)
{
    *k = (struct redis_link){.address = address,
                             .clock = clock,
                             .timeout_ms = timeout_ms,
                             .allowed_ms = timeout_ms,
                             .fd = -1};
}

static void out_clear(struct redis_link *k)
{
    k->out.len = k->first_len = k->n_out = 0;
    if (k->out.cap > OUT_KEPT_MAX)
        buf_close(&k->out);
}

void redis_link_close(struct redis_link *k)
{
    link_hang_up(k);
    buf_close(&k->out);
    lookup_abandon(k->lookup);
    k->lookup = NULL;
    free(k->found.host);
    k->found = (struct redis_node){0};
    k->first_len = k->n_out = 0;
}

/* ---- exchanges ---- */

void redis_put(struct redis_link *k, const struct redis_arg *args, size_t n)
{
    link_encode(&k->out, args, n);
    if (k->n_out++ == 0)
        k->first_len = k->out.len;
}

/* Connects if necessary and sends the commands.  Closes the link on failure; empties the buffer in
 * any case. */
static enum hf_result send_all(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    if (k->fd < 0)
        result = link_connect(k, deadline_us, fault);
    if (result == HF_DONE) {
        size_t sent = link_send(k, &k->out, deadline_us);
        if (sent < k->out.len)
            result =
                link_fail_errno(k, sent < k->first_len ? HF_UNREACHABLE : HF_UNKNOWN, errno, fault);
    }
    if (result != HF_DONE)
        link_hang_up(k);
    out_clear(k);
    return result;
}

void redis_drop_stale(struct redis_link *k)
{
    int64_t now_us = clock_boot_us(k->clock);
    if (k->fd >= 0 && now_us - k->used_us > IDLE_US && link_is_stale(k))
        link_hang_up(k);
    k->used_us = now_us;
}

enum hf_result redis_exchange(struct redis_link *k, int64_t limit_ms, redisReply **replies,
                              struct hf_fault *fault)
{
    bool limited = limit_ms > 0 && limit_ms < k->timeout_ms;
    k->allowed_ms = limited ? limit_ms : k->timeout_ms;
    redis_drop_stale(k);
    int64_t deadline_us = k->deadline_us ? k->deadline_us : k->used_us + 1000 * k->allowed_ms;
    /* a longer request may have to wait for room in the socket, which takes time off the limit */
    bool at_once = k->fd >= 0 && !k->tls && !k->deadline_us && k->out.len <= OUT_KEPT_MAX;
    size_t n = k->n_out;
    enum hf_result result = send_all(k, deadline_us, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++) {
        replies[i] = link_next_reply(k, deadline_us, at_once && !limited && i == 0);
        if (replies[i])
            continue;
        result = link_fail_errno(k, HF_UNKNOWN, errno, fault);
        while (i > 0)
            freeReplyObject(replies[--i]);
        link_hang_up(k);
        return result;
    }
    return HF_DONE;
}

enum hf_result redis_send(struct redis_link *k, struct hf_fault *fault)
{
    k->allowed_ms = k->timeout_ms;
    return send_all(k, clock_boot_us(k->clock) + 1000 * k->timeout_ms, fault);
}

/* Sleeps until the link or wake_fd is readable, or the time is up. */
static void wait_for_message(const struct redis_link *k, int wake_fd, int64_t ms)
{
    struct pollfd files[] = {{.fd = k->fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    (void)wait_files(files, 2, 1000 * ms);
}

enum hf_result redis_receive(struct redis_link *k, int64_t timeout_ms, int wake_fd,
                             redisReply **ret, struct hf_fault *fault)
{
    int64_t deadline_us = clock_boot_us(k->clock) + 1000 * timeout_ms;
    *ret = link_next_reply(k, wake_fd >= 0 ? 0 : deadline_us, false);
    if (!*ret && errno == ETIMEDOUT && wake_fd >= 0) {
        wait_for_message(k, wake_fd, timeout_ms);
        *ret = link_next_reply(k, 0, false);
    }
    if (*ret || errno == ETIMEDOUT)
        return HF_DONE;
    enum hf_result result = link_fail_errno(k, HF_UNREACHABLE, errno, fault);
    link_hang_up(k);
    return result;
}

enum hf_result redis_await(struct redis_link *k, redisReply **ret, struct hf_fault *fault)
{
    *ret = link_next_reply(k, clock_boot_us(k->clock) + 1000 * k->timeout_ms, !k->tls);
    if (*ret || errno == ETIMEDOUT)
        return HF_DONE;
    enum hf_result result = link_fail_errno(k, HF_UNREACHABLE, errno, fault);
    link_hang_up(k);
    return result;
}
