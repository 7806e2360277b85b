/* The numbers behind GET /metrics.  Registered at start by one thread; then any thread updates them
 * with relaxed atomics and any thread renders, each number by itself: a page is not one instant.
 * A metric has an allocation of its own, larger than a cache line, so that two busy counters do
 * not slow each other down. */
#include "base/metrics.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "base/thread_number.h"
#include "base/vec.h"

const double histogram_seconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                    0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
const int histogram_seconds_len = sizeof histogram_seconds / sizeof *histogram_seconds;
const double histogram_sizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
const int histogram_sizes_len = sizeof histogram_sizes / sizeof *histogram_sizes;

enum metric_type { COUNTER, GAUGE, HISTOGRAM };
static const char *const type_names[] = {"counter", "gauge", "histogram"};

struct metric {
    enum metric_type type;
    char *name, *labels, *help; /* labels: NULL if none */
    bool measured;              /* `gauge` has the value, whatever the type */
    double scale;               /* of a measured one: its unit; 1: the value is an integer */
    union {
        struct counter counter;
        struct gauge gauge;
        struct histogram histogram;
    };
};

struct collector {
    enum metrics_when when;
    void (*collect)(void *context);
    void *context;
};

struct metrics {
    VEC(struct metric *) all;
    VEC(struct collector) collectors;
};

struct metrics *metrics_new(void) { return hf_alloc(sizeof(struct metrics)); }

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->all.n; i++) {
        struct metric *metric = m->all.v[i];
        free(metric->name);
        free(metric->labels);
        free(metric->help);
        free(metric);
    }
    vec_close(&m->all);
    vec_close(&m->collectors);
    free(m);
}

void metrics_collector(struct metrics *m, enum metrics_when when, void (*collect)(void *context),
                       void *context)
{
    *vec_push(&m->collectors) = (struct collector){when, collect, context};
}

static void collect(const struct metrics *m, enum metrics_when when)
{
    for (size_t i = 0; i < m->collectors.n; i++)
        if (m->collectors.v[i].when == when)
            m->collectors.v[i].collect(m->collectors.v[i].context);
}

void metrics_measure(const struct metrics *m) { collect(m, METRICS_AT_MEASURE); }
void metrics_collect(const struct metrics *m) { collect(m, METRICS_AT_RENDER); }

/* Is the metric the first of its name?  HELP and TYPE come before that one. */
static bool is_first(const struct metrics *m, size_t i)
{
    return i == 0 || strcmp(m->all.v[i]->name, m->all.v[i - 1]->name) != 0;
}

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

static struct metric *metric_add(struct metrics *m, enum metric_type type, const char *name,
                                 const char *labels, const char *help)
{
    hf_check(!strpbrk(help, "\\\n")); /* these would need escaping */
    struct metric *metric = hf_alloc(sizeof *metric);
    metric->type = type;
    metric->name = copy(name);
    metric->labels = copy(labels);
    metric->help = copy(help);
    *vec_push(&m->all) = metric;

    size_t last = m->all.n - 1;
    if (is_first(m, last)) {
        for (size_t i = 0; i < last; i++)
            hf_check(strcmp(m->all.v[i]->name, name) != 0); /* one after another */
    } else {
        hf_check(m->all.v[last - 1]->type == type);
    }
    return metric;
}

struct counter *metrics_counter(struct metrics *m, const char *name, const char *labels,
                                const char *help)
{
    return &metric_add(m, COUNTER, name, labels, help)->counter;
}

struct gauge *metrics_gauge(struct metrics *m, const char *name, const char *labels,
                            const char *help)
{
    return &metric_add(m, GAUGE, name, labels, help)->gauge;
}

struct gauge *metrics_measured(struct metrics *m, const char *name, const char *help, bool grows,
                               double scale)
{
    struct metric *metric = metric_add(m, grows ? COUNTER : GAUGE, name, NULL, help);
    metric->measured = true;
    metric->scale = scale;
    return &metric->gauge;
}

struct histogram *metrics_histogram(struct metrics *m, const char *name, const char *labels,
                                    const char *help, double scale, const double *bounds,
                                    int n_bounds)
{
    hf_check(scale > 0 && n_bounds > 0 && n_bounds <= HISTOGRAM_BUCKETS_MAX);
    struct histogram *h = &metric_add(m, HISTOGRAM, name, labels, help)->histogram;
    h->n_bounds = n_bounds;
    h->scale = scale;
    for (int i = 0; i < n_bounds; i++) {
        hf_check(bounds[i] >= 0 && (i == 0 || bounds[i] > bounds[i - 1]));
        h->bounds[i] = bounds[i];
        /* The largest integer within the bound; 0.3 / 0.1 must count as 3 although it is a little
         * less. */
        h->limits[i] = (uint64_t)(bounds[i] / scale * (1 + 1e-12));
    }
    return h;
}

unsigned metric_shard(void) { return (unsigned)(thread_number() % METRIC_SHARDS); }

uint64_t counter_read(const struct counter *c)
{
    uint64_t sum = 0;
    for (int i = 0; i < METRIC_SHARDS; i++)
        sum += atomic_load_explicit(&c->shards[i].value, memory_order_relaxed);
    return sum;
}

void histogram_observe(struct histogram *h, uint64_t value)
{
    int i = 0;
    unsigned shard = metric_shard();
    while (i < h->n_bounds && value > h->limits[i])
        i++;
    atomic_fetch_add_explicit(&h->shards[shard].counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->shards[shard].sum, value, memory_order_relaxed);
}

uint64_t histogram_bucket(const struct histogram *h, int i)
{
    uint64_t n = 0;
    for (int shard = 0; shard < METRIC_SHARDS; shard++)
        n += atomic_load_explicit(&h->shards[shard].counts[i], memory_order_relaxed);
    return n;
}

uint64_t histogram_sum(const struct histogram *h)
{
    uint64_t sum = 0;
    for (int shard = 0; shard < METRIC_SHARDS; shard++)
        sum += atomic_load_explicit(&h->shards[shard].sum, memory_order_relaxed);
    return sum;
}

/* ---- by name ---- */

const struct metric *metrics_find(const struct metrics *m, const char *name, const char *labels,
                                  const struct metric *after)
{
    size_t i = 0;
    while (after && i < m->all.n && m->all.v[i++] != after)
        ;
    for (; i < m->all.n; i++) {
        const struct metric *metric = m->all.v[i];
        if (strcmp(metric->name, name) == 0 &&
            (!labels || (metric->labels && strstr(metric->labels, labels))))
            return metric;
    }
    return NULL;
}

const char *metric_labels(const struct metric *metric) { return metric->labels; }

static int64_t gauge_read(const struct metric *metric)
{
    return atomic_load_explicit(&metric->gauge.value, memory_order_relaxed);
}

double metric_value(const struct metric *metric)
{
    hf_check(metric->type != HISTOGRAM);
    if (metric->measured)
        return (double)gauge_read(metric) * metric->scale;
    return metric->type == GAUGE ? (double)gauge_read(metric)
                                 : (double)counter_read(&metric->counter);
}

const struct histogram *metric_histogram(const struct metric *metric)
{
    hf_check(metric->type == HISTOGRAM);
    return &metric->histogram;
}

/* ---- Prometheus's text ---- */

static void histogram_render(const struct metric *metric, struct buf *out)
{
    const struct histogram *h = &metric->histogram;
    const char *name = metric->name, *labels = metric->labels ? metric->labels : "";
    const char *comma = metric->labels ? "," : "";
    uint64_t count = 0;
    for (int i = 0; i <= h->n_bounds; i++) {
        count += histogram_bucket(h, i);
        buf_printf(out, "%s_bucket{%s%sle=\"", name, labels, comma);
        if (i < h->n_bounds)
            buf_printf(out, "%.10g\"} %lu\n", h->bounds[i], count);
        else
            buf_printf(out, "+Inf\"} %lu\n", count);
    }
    const char *open = metric->labels ? "{" : "", *close = metric->labels ? "}" : "";
    double sum = (double)histogram_sum(h) * h->scale;
    buf_printf(out, "%s_sum%s%s%s %.10g\n", name, open, labels, close, sum);
    buf_printf(out, "%s_count%s%s%s %lu\n", name, open, labels, close, count);
}

static void number_render(const struct metric *metric, struct buf *out)
{
    buf_str(out, metric->name);
    if (metric->labels)
        buf_printf(out, "{%s}", metric->labels);
    if (metric->measured && metric->scale != 1)
        buf_printf(out, " %.15g\n", metric_value(metric));
    else if (metric->measured || metric->type == GAUGE)
        buf_printf(out, " %ld\n", gauge_read(metric));
    else
        buf_printf(out, " %lu\n", counter_read(&metric->counter));
}

void metrics_render(const struct metrics *m, struct buf *out)
{
    collect(m, METRICS_AT_RENDER);
    for (size_t i = 0; i < m->all.n; i++) {
        const struct metric *metric = m->all.v[i];
        if (is_first(m, i)) {
            buf_printf(out, "# HELP %s %s\n", metric->name, metric->help);
            buf_printf(out, "# TYPE %s %s\n", metric->name, type_names[metric->type]);
        }
        if (metric->type == HISTOGRAM)
            histogram_render(metric, out);
        else
            number_render(metric, out);
    }
}
