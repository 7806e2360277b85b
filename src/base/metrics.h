/* Counters, gauges and histograms, and their Prometheus text.  Registered once at start, by one
 * thread, before others run; updated by any thread with relaxed atomics (no lock on the hot path);
 * rendered by any thread.  Handles live as long as the struct metrics. */
#ifndef HF_BASE_METRICS_H
#define HF_BASE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"

struct metrics;

/* A counter is several counters, and each thread adds to one of them: two busy threads that added
 * to the same word would wait for each other's cache line. */
#define COUNTER_SHARDS 4
struct counter {
    struct {
        _Atomic uint64_t value;
        char padding[56]; /* puts the next shard into another cache line */
    } shards[COUNTER_SHARDS];
};

struct gauge {
    _Atomic int64_t value;
};

#define HISTOGRAM_BUCKETS_MAX 24
struct histogram {
    int n_bounds;
    double bounds[HISTOGRAM_BUCKETS_MAX];   /* ascending; +Inf is implied */
    uint64_t limits[HISTOGRAM_BUCKETS_MAX]; /* the bounds in observed integers, rounded down */
    double scale;                           /* observed integer * scale = unit of the bounds */
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS_MAX + 1];
    _Atomic uint64_t sum; /* in observed integers */
};

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* `labels` is the text between the braces (`result="granted",by="view"`) or NULL.  Metrics of one
 * name must be registered one after another, with the same help; they share HELP and TYPE. */
struct counter *metrics_counter(struct metrics *m, const char *name, const char *labels,
                                const char *help);
struct gauge *metrics_gauge(struct metrics *m, const char *name, const char *labels,
                            const char *help);
/* `scale` turns observed integers into the bounds' unit: 1e-6 for microseconds shown as seconds. */
struct histogram *metrics_histogram(struct metrics *m, const char *name, const char *help,
                                    double scale, const double *bounds, int n_bounds);

void metrics_render(const struct metrics *m, struct buf *out);

/* The calling thread's shard. */
unsigned counter_shard(void);
static inline void counter_add(struct counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->shards[counter_shard()].value, n, memory_order_relaxed);
}
/* The sum over all threads; additions that are under way may or may not be in it. */
uint64_t counter_read(const struct counter *c);
static inline void gauge_set(struct gauge *g, int64_t n)
{
    atomic_store_explicit(&g->value, n, memory_order_relaxed);
}
static inline void gauge_add(struct gauge *g, int64_t n)
{
    atomic_fetch_add_explicit(&g->value, n, memory_order_relaxed);
}
void histogram_observe(struct histogram *h, uint64_t value);

/* 100 us to 10 s, for latencies. */
extern const double histogram_seconds[];
extern const int histogram_seconds_len;
/* 1 to 8192 in powers of two, for sizes of batches. */
extern const double histogram_sizes[];
extern const int histogram_sizes_len;

#endif
