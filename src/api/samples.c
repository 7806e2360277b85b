/* See samples.h.  The thread that takes samples owns what a column remembers of its metrics; `lock`
 * protects the ring alone. */
#include "api/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/vec.h"

#define EVERY_US ((int64_t)SAMPLES_EVERY_MS * 1000)
#define BUCKETS (HISTOGRAM_BUCKETS_MAX + 1)

struct column {
    const struct sample_series *series;
    char label[SAMPLE_LABEL_SIZE];
    VEC(const struct metric *) metrics;
    /* As of the last sample. */
    double total;             /* of counters */
    uint64_t sum;             /* of histograms */
    uint64_t counts[BUCKETS]; /* likewise */
    double *values;           /* the ring */
};

struct samples {
    const struct metrics *metrics;
    const struct clock *clock;
    const struct sample_series *series;
    size_t n_series;
    struct column columns[SAMPLE_COLUMNS_MAX];
    size_t n_columns; /* set by the first turn, under `lock` */
    int64_t taken_us; /* boot time of the last sample */
    int64_t next_us;  /* when the next one is due; 0: before the first turn */

    struct lock lock;
    int64_t at_ms[SAMPLES_MAX];
    size_t n, first; /* how many samples there are; the index of the oldest */
};

struct samples *samples_new(const struct metrics *m, const struct clock *clock,
                            const struct sample_series *series, size_t n)
{
    struct samples *s = hf_alloc(sizeof *s);
    *s = (struct samples){.metrics = m, .clock = clock, .series = series, .n_series = n};
    lock_init(&s->lock);
    return s;
}

void samples_free(struct samples *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_columns; i++) {
        vec_close(&s->columns[i].metrics);
        free(s->columns[i].values);
    }
    lock_close(&s->lock);
    free(s);
}

/* ---- columns ---- */

/* Copies the value of the label out of `kind="refund",...`; returns false if there is none. */
static bool label_value(const char *labels, const char *label, char out[SAMPLE_LABEL_SIZE])
{
    size_t len = strlen(label);
    const char *at = labels ? strstr(labels, label) : NULL;
    if (!at || strncmp(at + len, "=\"", 2) != 0)
        return false;
    at += len + 2;
    size_t value_len = strcspn(at, "\"");
    if (value_len >= SAMPLE_LABEL_SIZE)
        return false;
    memcpy(out, at, value_len);
    out[value_len] = '\0';
    return true;
}

/* The column of the series for this value of its label, made if need be. */
static struct column *column_of(struct samples *s, const struct sample_series *series,
                                const char *label)
{
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->columns[i].series == series && strcmp(s->columns[i].label, label) == 0)
            return &s->columns[i];
    hf_check(s->n_columns < SAMPLE_COLUMNS_MAX); /* the series are the program's own */
    struct column *c = &s->columns[s->n_columns++];
    *c = (struct column){.series = series};
    memcpy(c->label, label, strlen(label) + 1);
    c->values = hf_alloc(SAMPLES_MAX * sizeof *c->values);
    return c;
}

static void find_metrics(struct samples *s, const struct sample_series *series)
{
    for (int i = 0; i < 2; i++) {
        const char *labels = series->labels[i];
        if (i && !labels)
            continue;
        for (const struct metric *m = NULL;
             (m = metrics_find(s->metrics, series->metric, labels, m));) {
            char label[SAMPLE_LABEL_SIZE] = "";
            if (series->by_label && !label_value(metric_labels(m), series->by_label, label))
                continue;
            struct column *c = column_of(s, series, label);
            *vec_push(&c->metrics) = m;
        }
    }
}

static double total_of(const struct column *c)
{
    double total = 0;
    for (size_t i = 0; i < c->metrics.n; i++)
        total += metric_value(c->metrics.v[i]);
    return total;
}

static bool is_of_histogram(const struct column *c)
{
    return c->series->kind != SAMPLE_VALUE && c->series->kind != SAMPLE_RATE;
}

/* Reads histograms that have the same bounds as one. */
static uint64_t buckets_of(const struct column *c, uint64_t counts[BUCKETS])
{
    uint64_t sum = 0;
    memset(counts, 0, BUCKETS * sizeof *counts);
    for (size_t i = 0; i < c->metrics.n; i++) {
        const struct histogram *h = metric_histogram(c->metrics.v[i]);
        for (int b = 0; b <= h->n_bounds; b++)
            counts[b] += histogram_bucket(h, b);
        sum += histogram_sum(h);
    }
    return sum;
}

/* ---- one number ---- */

double sample_quantile(const struct histogram *h, const uint64_t *counts, double q)
{
    uint64_t all = 0, below = 0;
    for (int i = 0; i <= h->n_bounds; i++)
        all += counts[i];
    if (!all)
        return NAN;
    double rank = q * (double)all;
    for (int i = 0; i < h->n_bounds; i++) {
        double low = i ? h->bounds[i - 1] : 0;
        if (counts[i] && (double)(below + counts[i]) >= rank)
            return low + (h->bounds[i] - low) * ((rank - (double)below) / (double)counts[i]);
        below += counts[i];
    }
    return h->bounds[h->n_bounds - 1];
}

/* Moves a column of histograms on to the present, and computes what they got since. */
static double histogram_sample(struct column *c)
{
    uint64_t now[BUCKETS], gained[BUCKETS] = {0}, n = 0;
    uint64_t sum = buckets_of(c, now);
    const struct histogram *h = metric_histogram(c->metrics.v[0]);
    for (int i = 0; i <= h->n_bounds; i++) {
        gained[i] = now[i] - c->counts[i];
        n += gained[i];
        c->counts[i] = now[i];
    }
    uint64_t more = sum - c->sum;
    c->sum = sum;
    if (c->series->kind == SAMPLE_MEAN)
        return n ? (double)more * h->scale / (double)n : NAN;
    return sample_quantile(h, gained, c->series->kind == SAMPLE_P50 ? 0.5 : 0.99);
}

/* Three digits behind the point are enough to look at, and short to send. */
static double rounded(double value)
{
    return isnan(value) || value < 0 || value > 1e12
               ? value
               : (double)(uint64_t)(value * 1000 + 0.5) / 1000;
}

static double column_sample(struct column *c, double elapsed_s)
{
    double scale = c->series->scale != 0 ? c->series->scale : 1;
    if (is_of_histogram(c))
        return rounded(histogram_sample(c) * scale);
    double before = c->total;
    c->total = total_of(c);
    return rounded((c->series->kind == SAMPLE_VALUE ? c->total : (c->total - before) / elapsed_s) *
                   scale);
}

/* ---- the ring ---- */

static size_t ring_index(const struct samples *s, size_t i) { return (s->first + i) % SAMPLES_MAX; }

/* Finds the metrics and notes where they stand. */
static void begin(struct samples *s, int64_t now_us)
{
    lock_take(&s->lock);
    for (size_t i = 0; i < s->n_series; i++)
        find_metrics(s, &s->series[i]);
    lock_give(&s->lock);
    for (size_t i = 0; i < s->n_columns; i++)
        (void)column_sample(&s->columns[i], 1);
    s->taken_us = now_us;
    s->next_us = now_us + EVERY_US;
}

static void take(struct samples *s, int64_t now_us)
{
    double fresh[SAMPLE_COLUMNS_MAX] = {0};
    int64_t at_ms = clock_wall_us(s->clock) / 1000;
    for (size_t i = 0; i < s->n_columns; i++)
        fresh[i] = column_sample(&s->columns[i], (double)(now_us - s->taken_us) / 1e6);
    s->taken_us = now_us;

    lock_take(&s->lock);
    if (s->n && at_ms <= s->at_ms[ring_index(s, s->n - 1)]) /* the wall clock was set back */
        at_ms = s->at_ms[ring_index(s, s->n - 1)] + 1;
    if (s->n == SAMPLES_MAX)
        s->first = ring_index(s, 1);
    else
        s->n++;
    size_t last = ring_index(s, s->n - 1);
    s->at_ms[last] = at_ms;
    for (size_t i = 0; i < s->n_columns; i++)
        s->columns[i].values[last] = fresh[i];
    lock_give(&s->lock);
}

int64_t samples_turn(struct samples *s)
{
    int64_t now_us = clock_boot_us(s->clock);
    if (now_us < s->next_us)
        return s->next_us - now_us;
    metrics_collect(s->metrics);
    if (!s->next_us) {
        begin(s, now_us);
        return EVERY_US;
    }
    take(s, now_us);
    s->next_us += EVERY_US;
    if (s->next_us <= now_us) /* the machine slept: what was missed stays missing */
        s->next_us = now_us + EVERY_US;
    return s->next_us - now_us;
}

/* ---- for readers ---- */

void samples_read(struct samples *s, int64_t after_ms, struct sample_copy *ret)
{
    *ret = (struct sample_copy){.now_ms = clock_wall_us(s->clock) / 1000};
    lock_take(&s->lock);
    size_t skip = 0;
    while (skip < s->n && s->at_ms[ring_index(s, skip)] <= after_ms)
        skip++;
    ret->n = s->n - skip;
    ret->at_ms = hf_alloc((ret->n + 1) * sizeof *ret->at_ms);
    for (size_t i = 0; i < ret->n; i++)
        ret->at_ms[i] = s->at_ms[ring_index(s, skip + i)];
    ret->n_columns = s->n_columns;
    for (size_t c = 0; c < s->n_columns; c++) {
        struct sample_column *to = &ret->columns[c];
        to->series = s->columns[c].series;
        memcpy(to->label, s->columns[c].label, sizeof to->label);
        to->values = hf_alloc((ret->n + 1) * sizeof *to->values);
        for (size_t i = 0; i < ret->n; i++)
            to->values[i] = s->columns[c].values[ring_index(s, skip + i)];
    }
    int64_t last_ms = s->n ? s->at_ms[ring_index(s, s->n - 1)] : 0;
    lock_give(&s->lock);
    if (ret->now_ms < last_ms)
        ret->now_ms = last_ms;
}

void sample_copy_close(struct sample_copy *copy)
{
    for (size_t i = 0; i < copy->n_columns; i++)
        free(copy->columns[i].values);
    free(copy->at_ms);
    *copy = (struct sample_copy){0};
}
