/* See listener.h. */
#include "lease/sql/listener.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/wait.h"
#include "lease/sql/statements.h"

/* Places are kept this often: one survives three lost chances. */
#define KEEP_EVERY_US (INT64_C(1000) * WAITER_SILENT_MS / 4)
/* The connection is closed after this long without a waiter. */
#define IDLE_US INT64_C(10000000)
#define FOREVER_US INT64_C(86400000000)
#define RETRY_US INT64_C(300000) /* after a failure to connect */
/* How often waiters look while wake-ups do not arrive. */
#define DEAF_LOOK_MS 200

/* ---- sleepers ---- */

void listener_wake(struct sql_family *f, const char *owner)
{
    pthread_mutex_lock(&f->mutex);
    for (struct listener_sleeper *s = f->listener.sleepers; s; s = s->next)
        if (strcmp(s->owner, owner) == 0)
            sleeper_wake(&s->sleeper);
    pthread_mutex_unlock(&f->mutex);
}

static void set_listening(struct sql_family *f, bool is_listening)
{
    pthread_mutex_lock(&f->mutex);
    bool has_begun = is_listening && !f->listener.is_listening;
    f->listener.is_listening = is_listening;
    for (struct listener_sleeper *s = f->listener.sleepers; s && has_begun; s = s->next)
        sleeper_wake(&s->sleeper); /* a wake-up may have been sent before */
    pthread_mutex_unlock(&f->mutex);
}

bool listener_sleep(struct sql_family *f, struct listener_sleeper *s, int wake_fd,
                    int64_t timeout_ms)
{
    pthread_mutex_lock(&f->mutex);
    if (!f->listener.is_listening && timeout_ms > DEAF_LOOK_MS)
        timeout_ms = DEAF_LOOK_MS;
    bool is_woken = sleeper_sleep(&s->sleeper, &f->mutex, wake_fd, timeout_ms * 1000);
    pthread_mutex_unlock(&f->mutex);
    return is_woken;
}

void listener_leave(struct sql_family *f, struct listener_sleeper *s)
{
    pthread_mutex_lock(&f->mutex);
    *(s->prev ? &s->prev->next : &f->listener.sleepers) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    pthread_mutex_unlock(&f->mutex);
    sleeper_close(&s->sleeper);
}

/* ---- the thread ---- */

struct listener_work {
    struct sql_family *family;
    struct db *db;
    struct db_stmt *keep;
    VEC(struct db_value) rows; /* name and owner of each waiter */
    struct buf bytes;          /* what `rows` points to */
    struct buf lines;
    char topic[sizeof DB_WAKE_TOPIC + 20];
};

static void disconnect(struct listener_work *w)
{
    set_listening(w->family, false);
    db_close(w->db);
    w->db = NULL;
}

static enum hf_status connect_listener(struct listener_work *w, struct hf_err *err)
{
    enum hf_status status = db_open(w->family->url, &w->family->options, &w->db, err);
    if (status == HF_OK)
        status = w->db->driver->prepare(w->db, LEASE_SQL_KEEP_PLACES, &w->keep, err);
    /* Subscribes, and does not wait. */
    if (status == HF_OK)
        status = w->db->driver->network->listen(w->db, w->topic, -1, 0, &w->lines, err);
    if (status == HF_OK)
        set_listening(w->family, true);
    else
        disconnect(w);
    return status;
}

/* Sleepers may leave, and their requests end, while the statement runs: so it gets copies. */
static void copy_places(struct listener_work *w)
{
    struct listener_sleeper *s;
    vec_clear(&w->rows);
    w->bytes.len = 0;
    pthread_mutex_lock(&w->family->mutex);
    for (s = w->family->listener.sleepers; s; s = s->next) {
        buf_put(&w->bytes, s->request->key, s->request->key_len);
        buf_put(&w->bytes, s->request->owner, LEASE_OWNER_SIZE);
        *vec_push(&w->rows) = (struct db_value){.type = DB_BYTES, .len = s->request->key_len};
        *vec_push(&w->rows) = (struct db_value){.type = DB_BYTES, .len = LEASE_OWNER_SIZE};
    }
    pthread_mutex_unlock(&w->family->mutex);
    const char *at = w->bytes.data;
    for (size_t i = 0; i < w->rows.n; i++) {
        w->rows.v[i].data = at;
        at += w->rows.v[i].len;
    }
}

static enum hf_status keep_places(struct listener_work *w, struct hf_err *err)
{
    copy_places(w);
    return w->keep->driver->exec_many(w->keep, w->rows.v, w->rows.n / 2, NULL, err);
}

static void wake_all_named(struct listener_work *w)
{
    buf_char(&w->lines, '\0');
    char *rest = w->lines.data, *line;
    while ((line = strsep(&rest, "\n")) && *line)
        listener_wake(w->family, line);
    w->lines.len = 0;
}

/* Listens until it is time to keep the places. */
static enum hf_status listen_and_keep(struct listener_work *w, struct hf_err *err)
{
    int64_t keep_at_us = wait_now_us() + KEEP_EVERY_US, left_us = KEEP_EVERY_US;
    eventfd_t ignored;
    for (; left_us > 0; left_us = keep_at_us - wait_now_us()) {
        int fd = w->family->listener.wake_fd;
        /* After a reconnection that nobody noticed, wake-ups would be missing. */
        if (w->db->driver->sharing.is_gone(w->db))
            return hf_err_set(err, HF_STORE_UNAVAILABLE, "the connection was lost");
        enum hf_status status = w->db->driver->network->listen(
            w->db, w->topic, fd, (left_us + 999) / 1000, &w->lines, err);
        if (status != HF_OK)
            return status;
        wake_all_named(w);
        if (eventfd_read(fd, &ignored) == 0)
            break; /* the family is being closed, or something waits again */
    }
    return keep_places(w, err);
}

/* Sleeps while nothing waits; the connection is closed after a while.  Returns false once the
 * family is being closed. */
static bool await_sleepers(struct listener_work *w)
{
    struct sql_family *f = w->family;
    int64_t until_us = wait_now_us() + IDLE_US;
    pthread_mutex_lock(&f->mutex);
    while (!f->listener.stop && !f->listener.sleepers) {
        if (wait_cond_until(&f->listener.changed, &f->mutex,
                            w->db ? until_us : until_us + FOREVER_US))
            continue;
        pthread_mutex_unlock(&f->mutex);
        disconnect(w);
        pthread_mutex_lock(&f->mutex);
    }
    bool goes_on = !f->listener.stop;
    pthread_mutex_unlock(&f->mutex);
    return goes_on;
}

static void *listener_run(void *arg)
{
    struct listener_work w = {.family = arg};
    (void)snprintf(w.topic, sizeof w.topic, DB_WAKE_TOPIC "%" PRId64, w.family->topic);
    while (await_sleepers(&w)) {
        struct hf_err err = {0};
        struct pollfd wake = {.fd = w.family->listener.wake_fd, .events = POLLIN};
        if (!w.db && connect_listener(&w, &err) != HF_OK) {
            (void)wait_files(&wake, 1, RETRY_US);
            continue;
        }
        if (listen_and_keep(&w, &err) != HF_OK)
            disconnect(&w);
    }
    disconnect(&w);
    vec_close(&w.rows);
    buf_close(&w.bytes);
    buf_close(&w.lines);
    return NULL;
}

/* ---- joining ---- */

void listener_init(struct sql_family *f)
{
    f->listener.wake_fd = -1;
    wait_cond_init(&f->listener.changed);
}

void listener_close(struct sql_family *f)
{
    pthread_mutex_lock(&f->mutex);
    f->listener.stop = true;
    pthread_cond_signal(&f->listener.changed);
    if (f->listener.wake_fd >= 0)
        (void)eventfd_write(f->listener.wake_fd, 1);
    pthread_mutex_unlock(&f->mutex);
    if (f->listener.is_running)
        pthread_join(f->listener.thread, NULL);
    if (f->listener.wake_fd >= 0)
        close(f->listener.wake_fd);
    pthread_cond_destroy(&f->listener.changed);
}

/* Under the mutex.  The thread gets no signals: they are the program's. */
static bool start(struct sql_family *f)
{
    sigset_t all, before;
    if (f->listener.wake_fd < 0)
        f->listener.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->listener.wake_fd < 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    f->listener.is_running = pthread_create(&f->listener.thread, NULL, listener_run, f) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return f->listener.is_running;
}

enum hf_status listener_join(struct sql_family *f, struct listener_sleeper *s,
                             const struct lease_request *request, int wake_fd, struct hf_err *err)
{
    *s = (struct listener_sleeper){.request = request};
    lease_owner_text(request->owner, s->owner);
    pthread_mutex_lock(&f->mutex);
    bool is_running = f->listener.is_running || start(f);
    if (is_running) {
        sleeper_init(&s->sleeper, wake_fd);
        s->next = f->listener.sleepers;
        if (s->next)
            s->next->prev = s;
        f->listener.sleepers = s;
        pthread_cond_signal(&f->listener.changed);
    }
    pthread_mutex_unlock(&f->mutex);
    return is_running ? HF_OK
                      : hf_err_set(err, HF_INTERNAL, "no thread or file to wait with: %s",
                                   "the process has too many");
}
