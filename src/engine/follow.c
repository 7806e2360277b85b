/* The follower: hears from the ledger that other servers changed an event, and tells them of our
 * changes.  What is told is only a reason to look: the event's seq is the truth, and since a word
 * may be lost, every loaded event is compared with its clock row a few times a second.  Only such a
 * comparison, or a batch, makes a view fresh.  Never touches a view: an event that is behind is its
 * worker's to bring up to date.
 *
 * One thread, two connections: one to listen, one to ask and to tell.  What we tell we must hear
 * ourselves; an ear that does not is deaf, and is replaced. */
#include "engine/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/wait.h"
#include "engine/state.h"

#define TOPIC "holdfast_events"
#define POLL_EVERY_MS 400    /* how often every event is compared with its clock row */
#define ANNOUNCE_EVERY_MS 50 /* at most: what changed here, to the other servers */
#define TEXT_MAX 6000        /* of what is told at once */
#define POLL_CHUNK 500       /* clock rows asked for at once */
#define RETRY_MS 200         /* while the ledger does not answer */
#define HELLO_EVERY_MS 5000  /* "here I am": who hears nobody for long need not tell anything */
#define LONELY_AFTER_MS 16000
#define ECHO_MS 2000 /* until a hello of our own is heard */

struct follower {
    struct engine *engine;
    struct ledger *ear, *ledger;
    pthread_t thread;
    bool running;
    char me[24];         /* first word of what we tell, so as to know ourselves */
    int64_t echo_due_ms; /* a hello of ours is to be heard by then; 0: it was */
    int64_t next_poll_ms, next_tell_ms, next_hello_ms;
    int64_t heard_ms; /* another server, last */
    bool deaf;        /* the last try failed */

    int wake_fd;
    pthread_mutex_t lock; /* of the rest */
    VEC(struct event *) changed;
    bool stopping;
};

static int64_t now_ms(const struct follower *f)
{
    return clock_monotonic_us(f->engine->config.clock) / 1000;
}

static void wake(struct follower *f)
{
    uint64_t one = 1;
    (void)!write(f->wake_fd, &one, sizeof one);
}

void follower_announce(struct engine *e, struct event *event)
{
    struct follower *f = e->follower;
    if (atomic_exchange(&event->announced, true))
        return;
    pthread_mutex_lock(&f->lock);
    *vec_push(&f->changed) = event;
    bool first = f->changed.n == 1;
    pthread_mutex_unlock(&f->lock);
    if (first)
        wake(f);
}

/* ---- what we tell ---- */

/* Up to TEXT_MAX of "ME EVENT:SEQ EVENT:SEQ ..."; the rest the next time.  A telling is a
 * transaction, so one that nobody hears is left out; `hello` is told all the same. */
static bool tell_some(struct follower *f, bool hello, struct hf_err *err)
{
    char text[TEXT_MAX + 64];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", f->me), head = len;
    bool lonely = now_ms(f) - f->heard_ms > LONELY_AFTER_MS;
    pthread_mutex_lock(&f->lock);
    while (f->changed.n && len < TEXT_MAX) {
        struct event *event = f->changed.v[--f->changed.n];
        atomic_store(&event->announced, false); /* before seq is read: later changes tell again */
        len += (size_t)snprintf(text + len, sizeof text - len, " %" PRId64 ":%" PRId64,
                                event->def->id.key, atomic_load(&event->seq));
    }
    pthread_mutex_unlock(&f->lock);
    bool needless = lonely || len == head;
    return (needless && !hello) || ledger_notify(f->ledger, TOPIC, text, err) == HF_OK;
}

static bool anything_to_tell(struct follower *f)
{
    pthread_mutex_lock(&f->lock);
    bool any = f->changed.n > 0;
    pthread_mutex_unlock(&f->lock);
    return any;
}

/* ---- what we hear ---- */

static void ask_to_follow(struct follower *f, struct event *event)
{
    if (atomic_exchange(&event->following, true))
        return;
    struct command *c = hf_alloc(sizeof *c);
    c->kind = CMD_FOLLOW;
    c->internal = true;
    c->event = event;
    if (!lane_pass(&engine_worker(f->engine, event->def->id.key)->work, c))
        free(c); /* stopping */
}

static void hear_line(struct follower *f, char *line)
{
    char *rest = line;
    const char *from = strsep(&rest, " ");
    if (strcmp(from, f->me) == 0)
        f->echo_due_ms = 0;
    if (!*from || strcmp(from, f->me) == 0)
        return;
    if (now_ms(f) - f->heard_ms > LONELY_AFTER_MS)
        f->next_hello_ms = 0; /* somebody new, who should hear of us, too */
    f->heard_ms = now_ms(f);
    for (char *word; rest && (word = strsep(&rest, " "));) {
        char *colon = strchr(word, ':');
        if (!colon)
            continue;
        struct event *event = engine_event(f->engine, strtoll(word, NULL, 10));
        if (event && strtoll(colon + 1, NULL, 10) > atomic_load(&event->seq))
            ask_to_follow(f, event);
    }
}

static void hear(struct follower *f, struct buf *lines)
{
    buf_char(lines, '\0');
    for (char *rest = lines->data, *line; (line = strsep(&rest, "\n"));)
        hear_line(f, line);
}

/* ---- what we ask ---- */

/* Of each event read before the clock rows: a view that has that seq is the truth of then. */
static bool compare(struct follower *f, struct event *const *events, size_t n, struct hf_err *err)
{
    struct clock_row rows[POLL_CHUNK];
    int64_t before = engine_now_ms(f->engine);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct clock_row){.event = events[i]->def->id.key};
    if (ledger_clocks_read(f->ledger, rows, n, err) != HF_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].seq > atomic_load(&events[i]->seq))
            ask_to_follow(f, events[i]);
        else if (before > atomic_load_explicit(&events[i]->confirmed_ms, memory_order_relaxed))
            atomic_store_explicit(&events[i]->confirmed_ms, before, memory_order_relaxed);
    }
    return true;
}

static bool poll_clocks(struct follower *f, struct hf_err *err)
{
    struct loaded loaded = {0};
    int64_t before_ms = clock_boot_us(f->engine->config.clock) / 1000, now;
    bool ok = ledger_now(f->ledger, &now, err) == HF_OK; /* it answers, though nothing is loaded */
    engine_list_loaded(f->engine, &loaded);
    for (size_t i = 0; ok && i < loaded.events.n; i += POLL_CHUNK) {
        size_t n = loaded.events.n - i;
        ok = compare(f, loaded.events.v + i, n < POLL_CHUNK ? n : POLL_CHUNK, err);
    }
    vec_close(&loaded.events);
    if (ok)
        atomic_store_explicit(&f->engine->contact_ms, before_ms, memory_order_relaxed);
    return ok;
}

/* ---- the thread ---- */

static int64_t pause_ms(struct follower *f)
{
    int64_t until = f->next_poll_ms, now = now_ms(f);
    if (anything_to_tell(f) && f->next_tell_ms < until)
        until = f->next_tell_ms;
    return until > now ? until - now : 0;
}

static bool open_ear(struct follower *f, struct hf_err *err)
{
    struct db_options options = engine_db_options(f->engine);
    if (f->ear && f->echo_due_ms && now_ms(f) > f->echo_due_ms) {
        log_write(LOG_WARN, "the connection that listens is deaf; making another", NULL);
        ledger_close(f->ear);
        f->ear = NULL;
    }
    if (f->ear)
        return true;
    f->echo_due_ms = f->next_hello_ms = 0; /* try it out */
    return ledger_open(f->engine->config.ledger_url, &options, &f->ear, err) == HF_OK;
}

static bool turn(struct follower *f, struct buf *lines, struct hf_err *err)
{
    uint64_t woken;
    lines->len = 0;
    if (!open_ear(f, err) ||
        ledger_listen(f->ear, TOPIC, f->wake_fd, pause_ms(f), lines, err) != HF_OK)
        return false;
    (void)!read(f->wake_fd, &woken, sizeof woken);
    hear(f, lines);
    int64_t now = now_ms(f);
    bool hello = now >= f->next_hello_ms;
    if (hello || (now >= f->next_tell_ms && anything_to_tell(f))) {
        f->next_tell_ms = now + ANNOUNCE_EVERY_MS;
        if (!tell_some(f, hello, err))
            return false;
        if (hello) {
            f->next_hello_ms = now + HELLO_EVERY_MS;
            f->echo_due_ms = now_ms(f) + ECHO_MS;
        }
    }
    if (now < f->next_poll_ms)
        return true;
    f->next_poll_ms = now + POLL_EVERY_MS;
    return poll_clocks(f, err);
}

static void *follower_main(void *arg)
{
    struct follower *f = arg;
    struct buf lines = {0};
    for (;;) {
        struct hf_err err = {0};
        pthread_mutex_lock(&f->lock);
        bool stopping = f->stopping;
        pthread_mutex_unlock(&f->lock);
        if (stopping)
            break;
        bool heard = turn(f, &lines, &err);
        if (!heard && !f->deaf)
            log_write(LOG_WARN, "cannot follow the other servers", "why", err.msg, NULL);
        if (heard && f->deaf)
            log_write(LOG_INFO, "following the other servers again", NULL);
        f->deaf = !heard;
        if (!heard) {
            f->next_poll_ms = 0; /* what is said meanwhile is not said again */
            (void)wait_files(&(struct pollfd){.fd = f->wake_fd, .events = POLLIN}, 1,
                             RETRY_MS * 1000);
        }
    }
    buf_close(&lines);
    return NULL;
}

enum hf_status follower_start(struct engine *e, struct hf_err *err)
{
    struct follower *f = hf_alloc(sizeof *f);
    struct db_options options = engine_db_options(e);
    struct random random;
    uint8_t id[8];
    e->follower = f;
    f->engine = e;
    f->heard_ms = now_ms(f); /* until we know better */
    random_init_system(&random);
    random_bytes(&random, id, sizeof id);
    hex_format(id, sizeof id, f->me);
    pthread_mutex_init(&f->lock, NULL);
    f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (f->wake_fd < 0)
        return hf_err_set(err, HF_INTERNAL, "cannot create an eventfd");
    enum hf_status status = ledger_open(e->config.ledger_url, &options, &f->ledger, err);
    if (status == HF_OK && pthread_create(&f->thread, NULL, follower_main, f) != 0)
        status = hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    f->running = status == HF_OK;
    return status;
}

void follower_stop(struct engine *e)
{
    struct follower *f = e->follower;
    if (!f || !f->running)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    wake(f);
    pthread_join(f->thread, NULL);
    f->running = false;
}

void follower_free(struct engine *e)
{
    struct follower *f = e->follower;
    if (!f)
        return;
    ledger_close(f->ear);
    ledger_close(f->ledger);
    vec_close(&f->changed);
    if (f->wake_fd >= 0)
        close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
    e->follower = NULL;
}
