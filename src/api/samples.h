/* The last hour of the server's own metrics, so that somebody can look at it without a Prometheus:
 * a ring of SAMPLES_MAX samples, one every SAMPLES_EVERY_MS.  A sample has one number per series,
 * NAN where nothing is known.
 *
 * A series is computed from metrics that are named as GET /metrics names them.  One thread takes
 * the samples (samples_turn); any thread copies them (samples_read).  The lock is held for copying:
 * at most 8 bytes * SAMPLES_MAX per column. */
#ifndef HF_API_SAMPLES_H
#define HF_API_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/metrics.h"

#define SAMPLES_MAX 720
#define SAMPLES_EVERY_MS 5000
#define SAMPLE_COLUMNS_MAX 64
#define SAMPLE_LABEL_SIZE 32

enum sample_kind {
    SAMPLE_VALUE, /* what a gauge shows at the moment of the sample */
    SAMPLE_RATE,  /* by how much counters grew per second since the sample before */
    SAMPLE_P50,   /* of the values that a histogram got since the sample before; NAN: it got none */
    SAMPLE_P99,
    SAMPLE_MEAN, /* likewise their mean */
};

/* A series.  If several metrics have the name and the labels, it is computed from their sum. */
struct sample_series {
    const char *name;
    enum sample_kind kind;
    const char *metric;
    const char *labels[2]; /* only metrics whose labels contain one of these; NULLs: any */
    double scale;          /* multiplies the result; 0: 1 */
    const char *by_label;  /* one column for each value of this label; NULL: one column */
};

struct samples;

/* `series` is an array of `n` that outlives the ring; so do `m` and `clock`. */
struct samples *samples_new(const struct metrics *m, const struct clock *clock,
                            const struct sample_series *series, size_t n);
void samples_free(struct samples *s); /* accepts NULL */

/* Takes a sample if one is due, and returns how many microseconds remain until the next.  The first
 * call, which finds the metrics by their names, only notes where they stand.  For one thread; all
 * metrics must be registered by then. */
int64_t samples_turn(struct samples *s);

/* A copy of samples, oldest first. */
struct sample_column {
    const struct sample_series *series;
    char label[SAMPLE_LABEL_SIZE]; /* the value of series->by_label; "" if the series has none */
    double *values;                /* `n` of them */
};
struct sample_copy {
    int64_t now_ms; /* wall time, never before that of a sample */
    size_t n;
    int64_t *at_ms; /* wall time of each sample, ascending */
    struct sample_column columns[SAMPLE_COLUMNS_MAX];
    size_t n_columns; /* in the order of the series; a series without any metric has no column */
};
/* Copies the samples that were taken after `after_ms`. */
void samples_read(struct samples *s, int64_t after_ms, struct sample_copy *ret);
void sample_copy_close(struct sample_copy *copy); /* accepts a zeroed struct */

/* The value below which the share `q` of `counts` lies; counts[i] is the number of values in bucket
 * i of the histogram, bounds as in `h`.  Within a bucket values are taken to be spread evenly.  In
 * the last bucket, which has no upper bound, the answer is its lower one.  NAN if there are none.
 */
double sample_quantile(const struct histogram *h, const uint64_t *counts, double q);

#endif
