/* The follower: learns from the ledger's notifications that other servers changed an event, and
 * notifies them of our changes.  A notification is only a reason to look: the event's seq is the
 * truth, and since notifications can be lost, every loaded event is compared with its clock row a
 * few times a second.  Only such a comparison, or a batch, makes a view fresh.  The follower never
 * touches a view: it asks the event's worker to bring it up to date.
 *
 * One thread with two connections: one listens, the other reads clock rows and notifies.  The
 * listening connection must hear our own notifications; if it does not, it is replaced. */
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
#include "engine/engine_internal.h"

#define TOPIC "holdfast_events"
#define POLL_EVERY_MS 400    /* how often every event is compared with its clock row */
#define NOTIFY_EVERY_MS 50   /* at most this often */
#define TEXT_MAX 6000        /* bytes of one notification */
#define POLL_CHUNK 500       /* clock rows read at once */
#define RETRY_MS 200         /* while the ledger does not answer */
#define HELLO_EVERY_MS 5000  /* a notification without news, so that servers know of each other */
#define ALONE_AFTER_MS 16000 /* a server that hears of no other for this long stops notifying */
#define ECHO_MS 2000         /* within which our own hello must be heard */

struct follower {
    struct engine *engine;
    struct ledger *listener; /* NULL: to be opened */
    struct ledger *ledger;   /* reads clock rows and notifies */
    pthread_t thread;
    bool running;
    char me[24];         /* this server's name: the first word of its notifications */
    int64_t echo_due_ms; /* when our hello must have been heard; 0: it has been */
    int64_t next_poll_ms, next_notify_ms, next_hello_ms;
    int64_t heard_ms; /* when another server was last heard */
    bool failing;     /* the last turn failed */

    int wake_fd;
    pthread_mutex_t lock;        /* of the rest */
    VEC(struct event *) changed; /* pinned */
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
    if (!f || atomic_exchange(&event->sync.announced, true))
        return; /* without threads (engine_open) there is no follower */
    pthread_mutex_lock(&f->lock);
    *vec_push(&f->changed) = event_share(event);
    bool first = f->changed.n == 1;
    pthread_mutex_unlock(&f->lock);
    if (first)
        wake(f);
}

/* ---- notifying other servers ---- */

/* Notifies "ME EVENT:SEQ EVENT:SEQ ..." in at most TEXT_MAX bytes; the rest follows the next time.
 * A notification is a transaction, so it is left out when no other server listens, except for a
 * hello. */
static bool notify_some(struct follower *f, bool hello, struct hf_err *err)
{
    char text[TEXT_MAX + 64];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", f->me), head = len;
    bool is_alone = now_ms(f) - f->heard_ms > ALONE_AFTER_MS;
    pthread_mutex_lock(&f->lock);
    while (f->changed.n && len < TEXT_MAX) {
        struct event *event = f->changed.v[--f->changed.n];
        atomic_store(&event->sync.announced,
                     false); /* before seq is read: later changes announce again */
        len += (size_t)snprintf(text + len, sizeof text - len, " %" PRId64 ":%" PRId64,
                                event->def->id.key, atomic_load(&event->shown.seq));
        event_give(event);
    }
    pthread_mutex_unlock(&f->lock);
    bool is_needless = is_alone || len == head;
    return (is_needless && !hello) || ledger_notify(f->ledger, TOPIC, text, err) == HF_OK;
}

static bool has_changes(struct follower *f)
{
    pthread_mutex_lock(&f->lock);
    bool any = f->changed.n > 0;
    pthread_mutex_unlock(&f->lock);
    return any;
}

/* ---- listening to other servers ---- */

/* The caller has pinned the event. */
static void ask_to_follow(struct follower *f, struct event *event)
{
    if (atomic_exchange(&event->sync.following, true))
        return;
    struct command *c = hf_alloc(sizeof *c);
    c->kind = CMD_FOLLOW;
    c->internal = true;
    c->event = c->pinned = event_share(event);
    if (!lane_pass(&engine_worker(f->engine, event->def->id.key)->work, c))
        engine_finish(c); /* stopping */
}

static void read_line(struct follower *f, char *line)
{
    char *rest = line;
    const char *from = strsep(&rest, " ");
    if (strcmp(from, f->me) == 0)
        f->echo_due_ms = 0;
    if (!*from || strcmp(from, f->me) == 0)
        return;
    if (now_ms(f) - f->heard_ms > ALONE_AFTER_MS)
        f->next_hello_ms = 0; /* a new server, which should hear of this one, too */
    f->heard_ms = now_ms(f);
    for (char *word; rest && (word = strsep(&rest, " "));) {
        char *colon = strchr(word, ':');
        if (!colon)
            continue;
        struct event *event = engine_event_peek(f->engine, strtoll(word, NULL, 10));
        if (event && strtoll(colon + 1, NULL, 10) > atomic_load(&event->shown.seq))
            ask_to_follow(f, event);
        event_give(event);
    }
}

static void read_lines(struct follower *f, struct buf *lines)
{
    buf_char(lines, '\0');
    for (char *rest = lines->data, *line; (line = strsep(&rest, "\n"));)
        read_line(f, line);
}

/* ---- comparing clock rows ---- */

/* Compares events with their clock rows.  A view that has the seq of its row was exact at the
 * moment before the rows were read. */
static bool compare(struct follower *f, struct event *const *events, size_t n, struct hf_err *err)
{
    struct clock_row rows[POLL_CHUNK];
    int64_t before = engine_now_ms(f->engine);
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct clock_row){.event = events[i]->def->id.key};
    if (ledger_clocks_read(f->ledger, rows, n, err) != HF_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].seq > atomic_load(&events[i]->shown.seq))
            ask_to_follow(f, events[i]);
        else if (before > atomic_load_explicit(&events[i]->sync.confirmed_ms, memory_order_relaxed))
            atomic_store_explicit(&events[i]->sync.confirmed_ms, before, memory_order_relaxed);
    }
    return true;
}

static bool poll_clocks(struct follower *f, struct hf_err *err)
{
    struct loaded loaded = {0};
    int64_t before_ms = clock_boot_us(f->engine->config.clock) / 1000, now;
    bool ok = ledger_now(f->ledger, &now, err) ==
              HF_OK; /* shows that the ledger answers even if nothing is loaded */
    engine_list_loaded(f->engine, &loaded);
    for (size_t i = 0; ok && i < loaded.events.n; i += POLL_CHUNK) {
        size_t n = loaded.events.n - i;
        ok = compare(f, loaded.events.v + i, n < POLL_CHUNK ? n : POLL_CHUNK, err);
    }
    loaded_close(&loaded);
    if (ok)
        atomic_store_explicit(&f->engine->contact_ms, before_ms, memory_order_relaxed);
    return ok;
}

/* ---- the thread ---- */

static int64_t pause_ms(struct follower *f)
{
    int64_t until = f->next_poll_ms, now = now_ms(f);
    if (has_changes(f) && f->next_notify_ms < until)
        until = f->next_notify_ms;
    return until > now ? until - now : 0;
}

static bool open_listener(struct follower *f, struct hf_err *err)
{
    struct db_options options = engine_db_options(f->engine);
    if (f->listener && f->echo_due_ms && now_ms(f) > f->echo_due_ms) {
        log_write(LOG_WARN, "the listening connection does not hear us; opening another", NULL);
        ledger_close(f->listener);
        f->listener = NULL;
    }
    if (f->listener)
        return true;
    f->echo_due_ms = f->next_hello_ms = 0; /* a hello tries it out */
    return ledger_join(f->engine->config.ledger_url, &options, &f->listener, err) == HF_OK;
}

static bool turn(struct follower *f, struct buf *lines, struct hf_err *err)
{
    uint64_t woken;
    lines->len = 0;
    if (!open_listener(f, err) ||
        ledger_listen(f->listener, TOPIC, f->wake_fd, pause_ms(f), lines, err) != HF_OK)
        return false;
    (void)!read(f->wake_fd, &woken, sizeof woken);
    read_lines(f, lines);
    int64_t now = now_ms(f);
    bool hello = now >= f->next_hello_ms;
    if (hello || (now >= f->next_notify_ms && has_changes(f))) {
        f->next_notify_ms = now + NOTIFY_EVERY_MS;
        if (!notify_some(f, hello, err))
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
        bool ok = turn(f, &lines, &err);
        if (!ok && !f->failing)
            log_write(LOG_WARN, "cannot follow the other servers", "why", err.msg, NULL);
        if (ok && f->failing)
            log_write(LOG_INFO, "following the other servers again", NULL);
        f->failing = !ok;
        if (!ok) {
            f->next_poll_ms = 0; /* what is notified meanwhile is not notified again */
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
    f->heard_ms = now_ms(f); /* assume that there are others until the time shows */
    random_init_system(&random);
    random_bytes(&random, id, sizeof id);
    hex_format(id, sizeof id, f->me);
    pthread_mutex_init(&f->lock, NULL);
    f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (f->wake_fd < 0)
        return hf_err_set(err, HF_INTERNAL, "cannot create an eventfd");
    enum hf_status status = ledger_join(e->config.ledger_url, &options, &f->ledger, err);
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
    ledger_close(f->listener);
    ledger_close(f->ledger);
    vec_close(&f->changed);
    if (f->wake_fd >= 0)
        close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
    e->follower = NULL;
}
