/* Claims about the ring of samples: what a sample says of counters, gauges and histograms, how the
 * ring forgets, and what readers get.  On a fake clock. */
#include "support/fixtures.h"

#include <math.h>

#include "api/samples.h"

#define START_US (INT64_C(1700000000) * 1000000)
#define EVERY_US ((int64_t)SAMPLES_EVERY_MS * 1000)
#define START_MS (START_US / 1000)

static const double bounds[] = {0.001, 0.01, 0.1};

static const struct sample_series series[] = {
    {"granted", SAMPLE_RATE, "requests_total", .labels = {"result=\"granted\""}},
    {"refused", SAMPLE_RATE, "requests_total",
     .labels = {"result=\"taken\"", "result=\"sold_out\""}},
    {"all", SAMPLE_RATE, "requests_total", .scale = 1},
    {"depth", SAMPLE_VALUE, "depth", .scale = 1},
    {"p50_ms", SAMPLE_P50, "seconds", .scale = 1000},
    {"p99_ms", SAMPLE_P99, "seconds", .scale = 1000},
    {"mean", SAMPLE_MEAN, "sizes", .scale = 1},
    {"jobs", SAMPLE_VALUE, "jobs", .by_label = "kind"},
    {"missing", SAMPLE_RATE, "no_such_metric", .scale = 1},
};
enum { GRANTED, REFUSED, ALL, DEPTH, P50, P99, MEAN, JOBS_REFUND, JOBS_NOTIFY, COLUMNS };

static struct {
    struct metrics *metrics;
    struct counter *granted, *taken, *sold_out;
    struct gauge *depth, *refund, *notify;
    struct histogram *seconds, *sizes;
    struct clock_fake clock;
    struct samples *samples;
} f;

static int setup(void **state)
{
    (void)state;
    struct metrics *m = f.metrics = metrics_new();
    f.granted = metrics_counter(m, "requests_total", "result=\"granted\",by=\"ledger\"", "R.");
    f.taken = metrics_counter(m, "requests_total", "result=\"taken\",by=\"view\"", "R.");
    f.sold_out = metrics_counter(m, "requests_total", "result=\"sold_out\",by=\"view\"", "R.");
    f.depth = metrics_gauge(m, "depth", NULL, "D.");
    f.seconds = metrics_histogram(m, "seconds", NULL, "S.", 1e-6, bounds, 3);
    f.sizes = metrics_histogram(m, "sizes", NULL, "S.", 1, histogram_sizes, histogram_sizes_len);
    f.refund = metrics_gauge(m, "jobs", "kind=\"refund\"", "J.");
    f.notify = metrics_gauge(m, "jobs", "kind=\"notify\"", "J.");
    clock_fake_init(&f.clock, START_US);
    f.samples = samples_new(m, &f.clock.clock, series, sizeof series / sizeof *series);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    samples_free(f.samples);
    metrics_free(f.metrics);
    return 0;
}

static void wait_and_sample(void)
{
    clock_fake_advance(&f.clock, EVERY_US);
    assert_int_equal(samples_turn(f.samples), EVERY_US);
}

/* The numbers of the newest sample. */
static void read_last(double out[COLUMNS])
{
    struct sample_copy copy;
    samples_read(f.samples, 0, &copy);
    assert_int_equal(copy.n_columns, COLUMNS);
    assert_true(copy.n > 0);
    for (size_t i = 0; i < COLUMNS; i++)
        out[i] = copy.columns[i].values[copy.n - 1];
    assert_string_equal(copy.columns[JOBS_REFUND].label, "refund");
    assert_string_equal(copy.columns[JOBS_NOTIFY].label, "notify");
    sample_copy_close(&copy);
}

static void a_sample_tells_what_happened_since_the_one_before(void **state)
{
    (void)state;
    double last[COLUMNS];
    counter_add(f.granted, 1000); /* before the first turn: of no sample */
    histogram_observe(f.seconds, 5);
    assert_int_equal(samples_turn(f.samples), EVERY_US);
    counter_add(f.granted, 20);
    counter_add(f.taken, 5);
    counter_add(f.sold_out, 10);
    gauge_set(f.depth, 7);
    gauge_set(f.notify, 3);
    histogram_observe(f.sizes, 1);
    histogram_observe(f.sizes, 4);
    wait_and_sample();
    read_last(last);
    assert_float_equal(last[GRANTED], 4, 1e-9);
    assert_float_equal(last[REFUSED], 3, 1e-9);
    assert_float_equal(last[ALL], 7, 1e-9);
    assert_float_equal(last[DEPTH], 7, 0);
    assert_float_equal(last[JOBS_REFUND], 0, 0);
    assert_float_equal(last[JOBS_NOTIFY], 3, 0);
    assert_float_equal(last[MEAN], 2.5, 1e-9);
    assert_true(isnan(last[P50]) && isnan(last[P99]));

    gauge_set(f.depth, 2);
    for (int i = 0; i < 99; i++)
        histogram_observe(f.seconds, 500);
    histogram_observe(f.seconds, 50000);
    wait_and_sample();
    read_last(last);
    assert_float_equal(last[GRANTED], 0, 0);
    assert_float_equal(last[DEPTH], 2, 0);
    assert_float_equal(last[P50], 0.505, 1e-9);
    assert_float_equal(last[P99], 1, 1e-9);
    assert_true(isnan(last[MEAN]));
}

static void a_quantile_is_interpolated_within_its_bucket(void **state)
{
    (void)state;
    const struct histogram *h = f.seconds;
    assert_true(isnan(sample_quantile(h, (uint64_t[]){0, 0, 0, 0}, 0.5)));
    assert_float_equal(sample_quantile(h, (uint64_t[]){10, 0, 0, 0}, 0.5), 0.0005, 1e-12);
    assert_float_equal(sample_quantile(h, (uint64_t[]){0, 10, 0, 0}, 0.5), 0.0055, 1e-12);
    assert_float_equal(sample_quantile(h, (uint64_t[]){5, 5, 0, 0}, 0.5), 0.001, 1e-12);
    assert_float_equal(sample_quantile(h, (uint64_t[]){5, 0, 5, 0}, 0.75), 0.055, 1e-12);
    assert_float_equal(sample_quantile(h, (uint64_t[]){1, 0, 0, 99}, 0.99), 0.1, 1e-12);
}

static void the_ring_keeps_the_last_hour(void **state)
{
    (void)state;
    struct sample_copy copy;
    (void)samples_turn(f.samples);
    for (int i = 0; i < SAMPLES_MAX + 100; i++) {
        gauge_set(f.depth, i);
        wait_and_sample();
    }
    samples_read(f.samples, 0, &copy);
    assert_int_equal(copy.n, SAMPLES_MAX);
    for (size_t i = 0; i < copy.n; i++) {
        assert_float_equal(copy.columns[DEPTH].values[i], (double)(100 + i), 0);
        assert_int_equal(copy.at_ms[i], START_MS + (int64_t)(101 + i) * SAMPLES_EVERY_MS);
    }
    int64_t last_ms = copy.at_ms[copy.n - 1];
    assert_int_equal(copy.now_ms, last_ms);
    sample_copy_close(&copy);

    samples_read(f.samples, last_ms - 3 * SAMPLES_EVERY_MS, &copy);
    assert_int_equal(copy.n, 3);
    assert_float_equal(copy.columns[DEPTH].values[0], SAMPLES_MAX + 97, 0);
    sample_copy_close(&copy);
    samples_read(f.samples, last_ms, &copy);
    assert_int_equal(copy.n, 0);
    sample_copy_close(&copy);
}

static void a_turn_that_comes_early_takes_no_sample(void **state)
{
    (void)state;
    struct sample_copy copy;
    (void)samples_turn(f.samples);
    clock_fake_advance(&f.clock, 1000000);
    assert_int_equal(samples_turn(f.samples), EVERY_US - 1000000);
    samples_read(f.samples, 0, &copy);
    assert_int_equal(copy.n, 0);
    sample_copy_close(&copy);
}

static void rates_are_right_after_a_late_turn_and_missed_samples_stay_missing(void **state)
{
    (void)state;
    double last[COLUMNS];
    struct sample_copy copy;
    (void)samples_turn(f.samples);
    counter_add(f.granted, 60);
    clock_fake_advance(&f.clock, 6 * EVERY_US);
    assert_int_equal(samples_turn(f.samples), EVERY_US);
    read_last(last);
    assert_float_equal(last[GRANTED], 2, 1e-9);
    samples_read(f.samples, 0, &copy);
    assert_int_equal(copy.n, 1);
    sample_copy_close(&copy);
}

static void times_of_samples_ascend_though_the_wall_clock_is_set_back(void **state)
{
    (void)state;
    struct sample_copy copy;
    (void)samples_turn(f.samples);
    wait_and_sample();
    clock_fake_step(&f.clock, -3600 * INT64_C(1000000));
    wait_and_sample();
    wait_and_sample();
    samples_read(f.samples, 0, &copy);
    assert_int_equal(copy.n, 3);
    assert_true(copy.at_ms[0] < copy.at_ms[1] && copy.at_ms[1] < copy.at_ms[2]);
    assert_true(copy.now_ms >= copy.at_ms[2]);
    sample_copy_close(&copy);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(a_sample_tells_what_happened_since_the_one_before),
        CLAIM(a_quantile_is_interpolated_within_its_bucket),
        CLAIM(the_ring_keeps_the_last_hour),
        CLAIM(a_turn_that_comes_early_takes_no_sample),
        CLAIM(rates_are_right_after_a_late_turn_and_missed_samples_stay_missing),
        CLAIM(times_of_samples_ascend_though_the_wall_clock_is_set_back),
    };
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
