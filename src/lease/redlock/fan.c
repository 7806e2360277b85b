/* Exchanges with all servers at once, on the handle's thread.
 *
 * Every command goes to every link before the first answer is read.  A call waits for all answers,
 * but once a majority has answered it waits for the others only until short_ms after the beginning.
 * A server that is known not to count (join.c) is no part of that majority.
 * A server that was not in time becomes silent: nothing is read from its link any more, since an
 * answer could be taken for that of a later command.  The link stays open for releases, which the
 * server then executes after the request that it has not answered, in whatever state it is.  A
 * server that failed is left alone for a while, by all handles of one open, unless there is no
 * majority without it: a server that hangs costs short_ms now and then, not in every call.
 *
 * Cost on open links: one send and one recv for each server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/wait.h"
#include "lease/redlock/redlock.h"

#define IDLE_US 100000 /* after this the handle checks whether servers have closed their links */
/* A server that could not be reached is left alone for this long, which doubles with each failure
 * up to 2^3 times; one that did not answer in time for ten times as long, up to 2^4 times. */
#define PAUSE_US 100000

/* ---- servers that failed ---- */

static bool is_down(const struct redlock *r, size_t i)
{
    return atomic_load_explicit(&r->health->down[i].failures, memory_order_relaxed) > 0 &&
           clock_boot_us(r->clock) <
               atomic_load_explicit(&r->health->down[i].until_us, memory_order_relaxed);
}

static void note_failure(struct redlock *r, size_t i, bool timed_out)
{
    unsigned n = atomic_fetch_add(&r->health->down[i].failures, 1);
    int64_t pause_us = timed_out ? backoff_pause(10 * PAUSE_US, 160 * PAUSE_US, n)
                                 : backoff_pause(PAUSE_US, 8 * PAUSE_US, n);
    atomic_store(&r->health->down[i].until_us, clock_boot_us(r->clock) + pause_us);
}

static void note_answer(struct redlock *r, size_t i)
{
    if (atomic_load_explicit(&r->health->down[i].failures, memory_order_relaxed) > 0)
        atomic_store(&r->health->down[i].failures, 0);
}

static void hang_up(struct redlock_server *s)
{
    redis_link_close(&s->caller.link);
    s->state[0] = '\0';
    s->look_us = 0;
    s->is_silent = false;
}

/* ---- connecting ---- */

void fan_begin(struct redlock *r, int64_t limit_ms)
{
    int64_t ms = limit_ms > 0 && limit_ms < r->timeout_ms ? limit_ms : r->timeout_ms;
    r->begun_us = clock_boot_us(r->clock);
    r->until_us = r->begun_us + 1000 * ms;
}

/* A link that is readable though nothing is awaited was closed by the server; or it was silent, and
 * the server has come back to life.  A new connection serves in both cases. */
static void drop_stale(struct redlock *r)
{
    struct pollfd files[SERVERS_MAX];
    bool some = false;
    bool idle = r->begun_us - r->used_us > IDLE_US;
    for (size_t i = 0; i < r->n_servers; i++) {
        const struct redlock_server *s = &r->servers[i];
        bool check = s->caller.link.fd >= 0 && (idle || s->is_silent);
        files[i] = (struct pollfd){.fd = check ? s->caller.link.fd : -1, .events = POLLIN};
        some = some || check;
    }
    if (!some || wait_files(files, r->n_servers, 0) <= 0)
        return;
    for (size_t i = 0; i < r->n_servers; i++) {
        if (files[i].fd < 0 || files[i].revents == 0)
            continue;
        if (r->servers[i].is_silent)
            note_answer(r, i);
        hang_up(&r->servers[i]);
    }
}

/* Returns false if the server cannot be connected within `ms`. */
static bool dial(struct redlock *r, size_t i, int64_t ms)
{
    struct redlock_server *s = &r->servers[i];
    struct hf_fault fault = {0};
    int64_t from_us = clock_boot_us(r->clock);
    hang_up(s);
    s->caller.link.timeout_ms = ms;
    enum hf_result result = redis_send(&s->caller.link, &fault); /* connects */
    s->is_slow = ms > r->short_ms;
    if (result == HF_DONE)
        return true;
    snprintf(s->why, sizeof s->why, "%s", fault.msg);
    note_failure(r, i, clock_boot_us(r->clock) - from_us >= 900 * ms);
    return false;
}

server_set fan_open(const struct redlock *r)
{
    server_set set = 0;
    for (size_t i = 0; i < r->n_servers; i++)
        if (r->servers[i].caller.link.fd >= 0 && !r->servers[i].is_silent)
            set |= bit_of(i);
    return set;
}

server_set fan_ready(const struct redlock *r)
{
    server_set set = fan_open(r);
    for (size_t i = 0; i < r->n_servers; i++)
        if (!r->servers[i].state[0])
            set &= ~bit_of(i);
    return set;
}

/* Was the server found not to count when it was last looked at? */
static bool is_out(const struct redlock *r, size_t i)
{
    return !r->servers[i].state[0] && r->servers[i].look_us > 0;
}

static size_t count_useful(const struct redlock *r, server_set set)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_servers; i++)
        n += set & bit_of(i) && !is_out(r, i);
    return n;
}

bool fan_may_answer(const struct redlock *r)
{
    bool some = false;
    for (size_t i = 0; i < r->n_servers; i++)
        some = some || r->servers[i].is_silent;
    return some && clock_boot_us(r->clock) < r->until_us;
}

void fan_connect(struct redlock *r, bool keep_silent)
{
    server_set skipped = 0;
    drop_stale(r);
    for (size_t i = 0; i < r->n_servers && keep_silent; i++)
        if (r->servers[i].is_silent && is_down(r, i))
            skipped |= bit_of(i);
    server_set open = fan_open(r);
    if (count_of(open) == r->n_servers)
        return;
    for (size_t i = 0; i < r->n_servers; i++) {
        int64_t left_ms = (r->until_us - clock_boot_us(r->clock)) / 1000;
        int64_t ms = left_ms < r->short_ms ? left_ms : r->short_ms;
        if ((open | skipped) & bit_of(i) || is_down(r, i) || ms <= 0)
            continue;
        int64_t from_us = clock_boot_us(r->clock);
        if (dial(r, i, ms))
            open |= bit_of(i);
        else if (clock_boot_us(r->clock) - from_us < 900 * ms)
            skipped |= bit_of(i);
    }
    /* Without a majority, time is better spent on the servers that were slow or left alone. */
    for (size_t i = 0; i < r->n_servers && count_useful(r, open) < r->majority; i++) {
        int64_t left_ms = (r->until_us - clock_boot_us(r->clock)) / 1000;
        if (!((open | skipped) & bit_of(i)) && left_ms > 0 && dial(r, i, left_ms))
            open |= bit_of(i);
    }
}

/* ---- one exchange ---- */

static void free_got(struct redlock_server *s)
{
    for (size_t i = 0; i < s->got.n; i++)
        freeReplyObject(s->got.v[i]);
    vec_clear(&s->got);
}

/* Reads what has arrived, or waits for it, as redis_await does. */
static void take_replies(struct redlock *r, size_t i)
{
    struct redlock_server *s = &r->servers[i];
    struct hf_fault fault = {0};
    while (s->got.n < s->n_wanted) {
        redisReply *reply = NULL;
        enum hf_result result = s->got.n == 0
                                    ? redis_await(&s->caller.link, &reply, &fault)
                                    : redis_receive(&s->caller.link, 0, -1, &reply, &fault);
        if (result != HF_DONE) {
            snprintf(s->why, sizeof s->why, "%s", fault.msg);
            s->outcome = OUTCOME_LOST;
            free_got(s);
            hang_up(s);
            note_failure(r, i, false);
            return;
        }
        if (!reply)
            return;
        *vec_push(&s->got) = reply;
    }
    s->outcome = OUTCOME_ANSWERED;
    note_answer(r, i);
}

static void send_to(struct redlock *r, size_t i)
{
    struct redlock_server *s = &r->servers[i];
    struct hf_fault fault = {0};
    s->n_wanted = s->caller.link.n_out;
    s->caller.link.timeout_ms = s->is_silent ? 1 : r->short_ms; /* its buffer may be full */
    enum hf_result result = redis_send(&s->caller.link, &fault);
    s->outcome = result == HF_DONE          ? OUTCOME_PENDING
                 : result == HF_UNREACHABLE ? OUTCOME_REFUSED
                                            : OUTCOME_LOST;
    if (result == HF_DONE && !s->is_silent)
        return;
    if (result == HF_DONE) {
        s->outcome = OUTCOME_LOST;
        return;
    }
    snprintf(s->why, sizeof s->why, "%s", fault.msg);
    hang_up(s);
    note_failure(r, i, false);
}

static void be_silent(struct redlock *r, size_t i, int64_t waited_us)
{
    struct redlock_server *s = &r->servers[i];
    snprintf(s->why, sizeof s->why, "Redis at %.120s port %d: no answer within %" PRId64 " ms",
             s->address.host, s->address.port, waited_us / 1000);
    s->outcome = OUTCOME_LOST;
    s->is_silent = true;
    free_got(s);
    note_failure(r, i, true);
}

/* The servers whose answers are awaited, as files for poll; *ret_patient: is one of them worth the
 * wait although the others are a majority? */
static size_t awaited(const struct redlock *r, struct pollfd *files, size_t *which,
                      size_t *ret_answered, bool *ret_patient)
{
    size_t n = 0;
    *ret_answered = 0;
    *ret_patient = false;
    for (size_t i = 0; i < r->n_servers; i++) {
        const struct redlock_server *s = &r->servers[i];
        *ret_answered += s->outcome == OUTCOME_ANSWERED && !is_out(r, i);
        if (s->outcome != OUTCOME_PENDING)
            continue;
        which[n] = i;
        files[n++] = (struct pollfd){.fd = s->caller.link.fd, .events = POLLIN};
        *ret_patient = *ret_patient || !is_down(r, i);
    }
    return n;
}

/* The usual case, in which every server answers soon: reads one answer after the other.  A server
 * that does not answer costs short_ms, which it may, and ends this. */
static void gather_in_turn(struct redlock *r)
{
    for (size_t i = 0; i < r->n_servers; i++)
        if (r->servers[i].outcome == OUTCOME_PENDING &&
            (is_down(r, i) || r->servers[i].is_slow || r->servers[i].n_wanted > 1))
            return;
    for (size_t i = 0; i < r->n_servers; i++) {
        if (r->servers[i].outcome != OUTCOME_PENDING)
            continue;
        take_replies(r, i);
        if (r->servers[i].outcome != OUTCOME_ANSWERED)
            return;
    }
}

static void gather(struct redlock *r, int64_t until_us)
{
    int64_t from_us = clock_boot_us(r->clock), now_us = from_us;
    if (until_us - now_us >= 1000 * r->short_ms)
        gather_in_turn(r);
    for (;; now_us = clock_boot_us(r->clock)) {
        struct pollfd files[SERVERS_MAX];
        size_t which[SERVERS_MAX], answered;
        bool patient;
        size_t n = awaited(r, files, which, &answered, &patient);
        if (n == 0)
            return;
        int64_t limit_us = until_us;
        if (answered >= r->majority && limit_us > from_us + 1000 * r->short_ms)
            limit_us = from_us + 1000 * r->short_ms;
        if (answered >= r->majority && !patient)
            limit_us = now_us;
        int64_t left_us = limit_us > now_us ? limit_us - now_us : 0;
        int ready = wait_files(files, n, left_us);
        if (ready == 0 && left_us == 0) {
            for (size_t k = 0; k < n; k++)
                be_silent(r, which[k], now_us - from_us);
            return;
        }
        for (size_t k = 0; k < n && ready > 0; k++)
            if (files[k].revents)
                take_replies(r, which[k]);
    }
}

static bool lacks_script(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

/* Moves the answers to caller.replies.  In the second round they take the places of the answers
 * that said that the script is not known. */
static void keep_replies(struct redlock_server *s, bool again)
{
    size_t k = 0;
    if (!again)
        vec_clear(&s->caller.replies);
    for (size_t i = 0; again && i < s->caller.replies.n; i++) {
        if (!lacks_script(s->caller.replies.v[i]))
            continue;
        freeReplyObject(s->caller.replies.v[i]);
        s->caller.replies.v[i] = s->got.v[k++];
    }
    for (; !again && k < s->got.n; k++)
        *vec_push(&s->caller.replies) = s->got.v[k];
    vec_clear(&s->got);
}

static void free_replies(struct redlock_server *s)
{
    redis_call_done(&s->caller, s->caller.replies.n);
    vec_clear(&s->caller.replies);
}

/* Sends those commands again, with the text of the script, that the server did not run because it
 * does not know the script.  Returns the servers that this concerns. */
static server_set send_texts(struct redlock *r, const struct fan *fan)
{
    server_set again = 0;
    for (size_t i = 0; i < r->n_servers; i++) {
        struct redlock_server *s = &r->servers[i];
        if (s->outcome != OUTCOME_ANSWERED)
            continue;
        for (size_t k = 0; k < s->caller.replies.n; k++) {
            if (!lacks_script(s->caller.replies.v[k]))
                continue;
            if (!(again & bit_of(i)))
                s->caller.send_text = ~0U; /* the first command of each script brings the text */
            again |= bit_of(i);
            fan->put(r, i, fan->ctx, k);
        }
        s->caller.send_text = 0;
        if (again & bit_of(i))
            send_to(r, i);
    }
    return again;
}

/* A server of which an answer does not fit counts as one that did not answer. */
static void judge(struct redlock *r, size_t i, const struct fan *fan)
{
    struct redlock_server *s = &r->servers[i];
    size_t n_errors = 0, n = s->caller.replies.n;
    const redisReply *wrong = NULL;
    for (size_t k = 0; k < n; k++) {
        const redisReply *reply = s->caller.replies.v[k];
        n_errors += reply->type == REDIS_REPLY_ERROR;
        if (reply->type == REDIS_REPLY_ERROR || !fan->fits(fan->ctx, k, reply))
            wrong = reply;
    }
    if (!wrong)
        return;
    struct hf_fault fault = {0};
    bool refused = redis_refusal(&s->caller.link, wrong, &fault) == HF_UNREACHABLE;
    snprintf(s->why, sizeof s->why, "%s", fault.msg);
    s->outcome = refused && n_errors == n ? OUTCOME_REFUSED : OUTCOME_LOST;
    free_replies(s);
    hang_up(s);
    note_failure(r, i, false);
}

void fan_run(struct redlock *r, const struct fan *fan)
{
    r->used_us = clock_boot_us(r->clock);
    for (size_t i = 0; i < r->n_servers; i++) {
        struct redlock_server *s = &r->servers[i];
        s->outcome = OUTCOME_NONE;
        if (!(fan->to & bit_of(i)) || s->caller.link.fd < 0 ||
            (s->is_silent && !fan->may_be_silent))
            continue;
        for (size_t k = 0; k < fan->n; k++)
            fan->put(r, i, fan->ctx, k);
        send_to(r, i);
    }
    gather(r, fan->until_us);
    for (size_t i = 0; i < r->n_servers; i++)
        if (r->servers[i].outcome == OUTCOME_ANSWERED)
            keep_replies(&r->servers[i], false);
    server_set again = send_texts(r, fan);
    if (again)
        gather(r, fan->until_us);
    for (size_t i = 0; i < r->n_servers; i++) {
        struct redlock_server *s = &r->servers[i];
        if (again & bit_of(i) && s->outcome == OUTCOME_ANSWERED)
            keep_replies(s, true);
        else if (again & bit_of(i))
            free_replies(s);
        if (s->outcome == OUTCOME_ANSWERED)
            judge(r, i, fan);
    }
}

void fan_done(struct redlock *r)
{
    for (size_t i = 0; i < r->n_servers; i++)
        if (r->servers[i].outcome == OUTCOME_ANSWERED)
            free_replies(&r->servers[i]);
}

enum hf_result fan_fault(const struct redlock *r, enum hf_result result, server_set failed,
                         struct hf_fault *fault)
{
    struct buf text = {0};
    for (size_t i = 0; i < r->n_servers; i++)
        if (failed & bit_of(i))
            buf_printf(&text, "%s%s", text.len ? "; " : "",
                       r->servers[i].why[0] ? r->servers[i].why : "not tried again yet");
    buf_char(&text, '\0');
    fault_set(fault, result, "%zu of %zu servers can be used, a majority is %zu: %s",
              r->n_servers - count_of(failed), r->n_servers, r->majority, text.data);
    buf_close(&text);
    return result;
}
