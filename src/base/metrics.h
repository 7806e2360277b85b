/* Counters, gauges and histograms, and their Prometheus text.  Registered once at start, by one
 * thread, before others render them; updated by any thread with relaxed atomics (no lock on the hot
 * path); rendered by any thread.  Handles live as long as the struct metrics. */
#ifndef HF_BASE_METRICS_H
#define HF_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct metrics;

/* A counter is several counters, and each thread adds to one of them: two busy threads that added
 * to the same word would wait for each other's cache line.  The same goes for histograms. */
#define METRIC_SHARDS 4
struct counter {
    struct {
        _Atomic uint64_t value;
        char padding[56]; /* puts the next shard into another cache line */
    } shards[METRIC_SHARDS];
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
    struct {
        _Atomic uint64_t sum; /* in observed integers */
        _Atomic uint64_t counts[HISTOGRAM_BUCKETS_MAX + 1];
        char padding[48]; /* as above */
    } shards[METRIC_SHARDS];
};

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* `labels` is the text between the braces (`result="granted",by="view"`) or NULL.  Metrics of one
 * name must be registered one after another, with the same help; they share HELP and TYPE. */
struct counter *metrics_counter(struct metrics *m, const char *name, const char *labels,
                                const char *help);
struct gauge *metrics_gauge(struct metrics *m, const char *name, const char *labels,
                            const char *help);
/* A number that is measured elsewhere and set here with gauge_set; `grows` makes it a counter for
 * Prometheus.  `scale` as for histograms. */
struct gauge *metrics_measured(struct metrics *m, const char *name, const char *help, bool grows,
                               double scale);
/* `scale` turns observed integers into the bounds' unit: 1e-6 for microseconds shown as seconds. */
struct histogram *metrics_histogram(struct metrics *m, const char *name, const char *labels,
                                    const char *help, double scale, const double *bounds,
                                    int n_bounds);

/* Registers a function that sets metrics just before they are rendered, or, if that takes longer
 * than a request may take, whenever metrics_measure is called.  Register it before other threads
 * run.  It may run on several threads at once. */
enum metrics_when { METRICS_AT_RENDER, METRICS_AT_MEASURE };
void metrics_collector(struct metrics *m, enum metrics_when when, void (*collect)(void *context),
                       void *context);
/* Runs the collectors of METRICS_AT_MEASURE.  A background thread does so every few seconds. */
void metrics_measure(const struct metrics *m);
void metrics_render(const struct metrics *m, struct buf *out);

/* Reading metrics by their names, as GET /metrics shows them.  For threads that start after
 * everything has been registered. */
struct metric;
/* The first metric of that name after `after` (NULL: of all) whose labels contain the text `labels`
 * (NULL: whatever its labels are); NULL if there is none. */
const struct metric *metrics_find(const struct metrics *m, const char *name, const char *labels,
                                  const struct metric *after);
/* The text between the braces, or NULL. */
const char *metric_labels(const struct metric *metric);
/* The value of a counter or a gauge. */
double metric_value(const struct metric *metric);
const struct histogram *metric_histogram(const struct metric *metric);
/* Runs the collectors of METRICS_AT_RENDER. */
void metrics_collect(const struct metrics *m);

/* The calling thread's shard. */
unsigned metric_shard(void);
static inline void counter_add(struct counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->shards[metric_shard()].value, n, memory_order_relaxed);
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
/* A few comparisons of integers and two relaxed additions. */
void histogram_observe(struct histogram *h, uint64_t value);
/* How many values bucket i has, without those of lower buckets. */
uint64_t histogram_bucket(const struct histogram *h, int i);
/* The sum of all values, in observed integers. */
uint64_t histogram_sum(const struct histogram *h);

/* 100 us to 10 s, for latencies. */
extern const double histogram_seconds[];
extern const int histogram_seconds_len;
/* 1 to 8192 in powers of two, for sizes of batches. */
extern const double histogram_sizes[];
extern const int histogram_sizes_len;

#endif
