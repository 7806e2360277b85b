/* See log_writer.h.  The buffer is a ring of records: a header with file and length, then the lines
 * as they were put.  The thread copies records of one file into a batch under the mutex and
 * writes the batch without it, so the mutex is held for copies alone. */
#include "base/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"

#define RING_BYTES (1 << 20)
#define BATCH_BYTES (1 << 16)
#define REST_US 500

struct header {
    uint32_t len;
    int fd;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled; /* there is something to write, or the thread is to end */
    pthread_cond_t idle;   /* everything is written */
    pthread_t thread;
    void (*gap_line)(struct buf *line, uint64_t lost);
    size_t head, len; /* where the oldest record is, and how many bytes all of them have */
    uint64_t gap;     /* lines dropped since the ring was full; while it is not 0, all are */
    bool waits;       /* the thread waits for `filled` */
    bool ends;        /* the thread ends when everything is written */
    bool ended;
    char ring[RING_BYTES];
    char batch[BATCH_BYTES]; /* what is being written; of the thread alone */
} writer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static atomic_bool runs;
static atomic_uint_fast64_t dropped;

/* ---- files ---- */

/* Returns false if the lines, or some of them, are lost: the reader is gone. */
static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd file = {.fd = fd, .events = POLLOUT};
            (void)wait_files(&file, 1, -1);
        } else if (n <= 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---- the ring, with the mutex held ---- */

static void ring_put(const void *data, size_t len)
{
    size_t at = (writer.head + writer.len) % RING_BYTES;
    size_t first = len < RING_BYTES - at ? len : RING_BYTES - at;
    memcpy(writer.ring + at, data, first);
    memcpy(writer.ring, (const char *)data + first, len - first);
    writer.len += len;
}

/* Copies the oldest bytes and leaves them where they are. */
static void ring_peek(size_t skip, void *ret, size_t len)
{
    size_t at = (writer.head + skip) % RING_BYTES;
    size_t first = len < RING_BYTES - at ? len : RING_BYTES - at;
    memcpy(ret, writer.ring + at, first);
    memcpy((char *)ret + first, writer.ring, len - first);
}

/* Moves the oldest records, all of one file, into the batch. */
static size_t ring_take(int *ret_fd, uint64_t *ret_records)
{
    struct header h;
    size_t len = 0;
    *ret_records = 0;
    while (writer.len > 0) {
        ring_peek(0, &h, sizeof h);
        if (*ret_records > 0 && (h.fd != *ret_fd || len + h.len > BATCH_BYTES))
            break;
        ring_peek(sizeof h, writer.batch + len, h.len);
        writer.head = (writer.head + sizeof h + h.len) % RING_BYTES;
        writer.len -= sizeof h + h.len;
        len += h.len;
        *ret_fd = h.fd;
        ++*ret_records;
    }
    return len;
}

/* ---- the thread ---- */

/* Rests after a write that left nothing behind: lines that come in quick succession then gather,
 * and few of their callers have to wake the thread.  With that the log costs the process less than
 * one write(2) per line did; without it, half as much again. */
static void rest(void)
{
    pthread_mutex_unlock(&writer.mutex);
    wait_sleep_us(REST_US);
    pthread_mutex_lock(&writer.mutex);
}

static void write_batch(void)
{
    int fd = STDERR_FILENO;
    uint64_t records;
    size_t len = ring_take(&fd, &records);
    pthread_mutex_unlock(&writer.mutex);
    if (!write_all(fd, writer.batch, len))
        atomic_fetch_add(&dropped, records);
    pthread_mutex_lock(&writer.mutex);
}

static void write_gap(void)
{
    struct buf line = {0};
    uint64_t gap = writer.gap;
    writer.gap = 0;
    pthread_mutex_unlock(&writer.mutex); /* where memory runs out, the last words need it */
    writer.gap_line(&line, gap);
    (void)write_all(STDERR_FILENO, line.data, line.len);
    buf_close(&line);
    pthread_mutex_lock(&writer.mutex);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&writer.mutex);
    for (;;) {
        if (writer.len > 0) {
            write_batch();
            if (writer.len == 0 && !writer.ends)
                rest();
        } else if (writer.gap > 0) {
            write_gap();
        } else if (writer.ends) {
            break;
        } else {
            writer.waits = true;
            pthread_cond_broadcast(&writer.idle);
            pthread_cond_wait(&writer.filled, &writer.mutex);
            writer.waits = false;
        }
    }
    writer.ended = true;
    pthread_cond_broadcast(&writer.idle);
    pthread_mutex_unlock(&writer.mutex);
    return NULL;
}

/* ---- callers ---- */

void log_writer_put(int fd, const char *lines, size_t len)
{
    if (!atomic_load_explicit(&runs, memory_order_acquire)) {
        if (!write_all(fd, lines, len))
            atomic_fetch_add(&dropped, 1);
        return;
    }
    const struct header h = {.len = (uint32_t)len, .fd = fd};
    pthread_mutex_lock(&writer.mutex);
    bool fits = len <= BATCH_BYTES && sizeof h + len <= RING_BYTES - writer.len;
    if (writer.gap == 0 && fits) {
        ring_put(&h, sizeof h);
        ring_put(lines, len);
    } else {
        writer.gap++;
        atomic_fetch_add(&dropped, 1);
    }
    bool wakes = writer.waits;
    writer.waits = false;
    pthread_mutex_unlock(&writer.mutex);
    if (wakes)
        pthread_cond_signal(&writer.filled);
}

bool log_writer_start(void (*gap_line)(struct buf *line, uint64_t lost), struct hf_err *err)
{
    writer.gap_line = gap_line;
    writer.ends = writer.ended = writer.waits = false;
    wait_cond_init(&writer.idle);
    int failed = pthread_create(&writer.thread, NULL, run, NULL);
    if (failed) {
        (void)hf_err_set(err, HF_INTERNAL, "no thread for the log: %s", strerror(failed));
        return false;
    }
    atomic_store_explicit(&runs, true, memory_order_release);
    return true;
}

bool log_writer_flush(int64_t timeout_ms)
{
    if (!atomic_load_explicit(&runs, memory_order_acquire))
        return true;
    int64_t until_us = wait_now_us() + timeout_ms * 1000;
    pthread_mutex_lock(&writer.mutex);
    while (!writer.waits && !writer.ended && wait_cond_until(&writer.idle, &writer.mutex, until_us))
        ;
    bool flushed = writer.waits || writer.ended;
    pthread_mutex_unlock(&writer.mutex);
    return flushed;
}

void log_writer_stop(int64_t timeout_ms)
{
    if (!atomic_load_explicit(&runs, memory_order_acquire))
        return;
    pthread_mutex_lock(&writer.mutex);
    writer.ends = true;
    writer.waits = false;
    pthread_cond_signal(&writer.filled);
    pthread_mutex_unlock(&writer.mutex);
    if (!log_writer_flush(timeout_ms)) {
        (void)pthread_detach(writer.thread);
        return;
    }
    (void)pthread_join(writer.thread, NULL);
    atomic_store_explicit(&runs, false, memory_order_release);
}

uint64_t log_writer_dropped(void) { return atomic_load(&dropped); }
