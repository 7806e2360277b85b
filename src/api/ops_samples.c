/* GET /v1/ops/samples: the last hour of the server's own metrics, for the operator's page.  On HTTP
 * threads; the main thread takes the samples. */
#include <math.h>
#include <string.h>

#include "api/routes.h"
#include "api/samples.h"
#include "json/fields.h"

#define HOLDS "holdfast_hold_requests_total"
#define BOOKINGS "holdfast_bookings_total"

/* clang-format off */
/* docs/openapi.yaml says what each of them means. */
static const struct sample_series series[] = {
    {"holds_granted_per_s", SAMPLE_RATE, HOLDS, .labels = {"result=\"granted\""}},
    {"holds_taken_per_s", SAMPLE_RATE, HOLDS, .labels = {"result=\"taken\""}},
    {"holds_sold_out_per_s", SAMPLE_RATE, HOLDS, .labels = {"result=\"sold_out\""}},
    {"holds_error_per_s", SAMPLE_RATE, HOLDS, .labels = {"result=\"error\""}},
    {"refused_by_view_per_s", SAMPLE_RATE, HOLDS, .labels = {"by=\"view\""}},
    {"refused_by_gate_per_s", SAMPLE_RATE, HOLDS, .labels = {"by=\"gate\""}},
    {"refused_by_ledger_per_s", SAMPLE_RATE, HOLDS,
     .labels = {"result=\"taken\",by=\"ledger\"", "result=\"sold_out\",by=\"ledger\""}},
    {"hold_p50_ms", SAMPLE_P50, "holdfast_hold_seconds", .scale = 1000},
    {"hold_p99_ms", SAMPLE_P99, "holdfast_hold_seconds", .scale = 1000},
    {"commit_p50_ms", SAMPLE_P50, "holdfast_commit_seconds", .scale = 1000},
    {"commit_p99_ms", SAMPLE_P99, "holdfast_commit_seconds", .scale = 1000},
    {"batch_commands_mean", SAMPLE_MEAN, "holdfast_batch_commands", .scale = 1},
    {"queue_depth", SAMPLE_VALUE, "holdfast_queue_depth", .scale = 1},
    {"streams_open", SAMPLE_VALUE, "holdfast_streams_open", .scale = 1},
    {"holds_active", SAMPLE_VALUE, "holdfast_holds_active", .scale = 1},
    {"expired_per_s", SAMPLE_RATE, "holdfast_holds_expired_total", .scale = 1},
    {"renewals_per_s", SAMPLE_RATE, "holdfast_renewals_total", .labels = {"result=\"renewed\""}},
    {"bookings_pending_per_s", SAMPLE_RATE, BOOKINGS, .labels = {"status=\"pending\""}},
    {"bookings_confirmed_per_s", SAMPLE_RATE, BOOKINGS, .labels = {"status=\"confirmed\""}},
    {"bookings_failed_per_s", SAMPLE_RATE, BOOKINGS, .labels = {"status=\"failed\""}},
    {"bookings_cancelled_per_s", SAMPLE_RATE, BOOKINGS, .labels = {"status=\"cancelled\""}},
    {"jobs_pending", SAMPLE_VALUE, "holdfast_jobs_pending", .by_label = "kind"},
    {"job_oldest_s", SAMPLE_VALUE, "holdfast_job_oldest_seconds", .by_label = "kind"},
    {"requests_per_s", SAMPLE_RATE, "holdfast_http_requests_total", .scale = 1},
};
/* clang-format on */

struct samples *api_samples_new(const struct metrics *m, const struct clock *clock)
{
    return samples_new(m, clock, series, sizeof series / sizeof *series);
}

/* `values` NULL: none of them is known. */
static void put_values(const double *values, size_t n, struct buf *out)
{
    buf_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        json_put_name(out, NULL);
        if (!values || isnan(values[i]))
            buf_lit(out, "null");
        else
            buf_printf(out, "%.10g", values[i]);
    }
    buf_char(out, ']');
}

/* Appends the columns of the series, which begin at `at`; returns where those of the next begin. */
static size_t put_series(const struct sample_copy *copy, const struct sample_series *s, size_t at,
                         struct buf *out)
{
    json_put_name(out, s->name);
    if (!s->by_label) {
        bool is_known = at < copy->n_columns && copy->columns[at].series == s;
        put_values(is_known ? copy->columns[at].values : NULL, copy->n, out);
        return at + is_known;
    }
    buf_char(out, '{');
    for (; at < copy->n_columns && copy->columns[at].series == s; at++) {
        json_put_text(out, NULL, copy->columns[at].label);
        buf_char(out, ':');
        put_values(copy->columns[at].values, copy->n, out);
    }
    buf_char(out, '}');
    return at;
}

static void put_samples(const struct sample_copy *copy, struct buf *out)
{
    size_t column = 0;
    buf_lit(out, "{\"object\":\"samples\"");
    json_put_int(out, "every_ms", SAMPLES_EVERY_MS);
    json_put_int(out, "now_ms", copy->now_ms);
    json_open(out, "at", '[');
    for (size_t i = 0; i < copy->n; i++)
        json_put_int(out, NULL, copy->at_ms[i]);
    buf_lit(out, "],\"series\":{");
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        column = put_series(copy, &series[i], column, out);
    buf_lit(out, "}}");
}

void ops_samples(struct request *r)
{
    struct call *c = call_of(r);
    const char *after = request_query(r, "after");
    struct sample_copy copy;
    int64_t after_ms = 0;
    if (after && !parse_digits(after, strlen(after), &after_ms)) {
        call_invalid(c, "after must be a time in milliseconds since 1970");
        return;
    }
    samples_read(call_api(c)->samples, after_ms, &copy);
    put_samples(&copy, &r->out);
    sample_copy_close(&copy);
    answer_out(r, HTTP_OK, type_json);
}
