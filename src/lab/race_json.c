/* See race.h: writes the result as JSON. */
#include "base/json_put.h"
#include "lab/race.h"

static void put_latency(struct buf *b, const struct race_latency *l)
{
    if (l->n == 0) {
        buf_lit(b, "null");
        return;
    }
    buf_printf(b, "{\"avg\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"quantiles\":[", l->avg_ms, l->p50_ms,
               l->p99_ms);
    for (size_t i = 0; i < RACE_QUANTILES; i++)
        buf_printf(b, "%s%.3f", i ? "," : "", l->quantiles_ms[i]);
    buf_lit(b, "]}");
}

static void put_run(struct buf *b, const struct race_run *run)
{
    json_open(b, NULL, '{');
    json_put_text_or_null(b, "strategy", run->strategy->name);
    json_put_text_or_null(b, "summary", run->strategy->summary);
    json_put_bool(b, "promises_correct", run->strategy->correct);
    json_put_text_or_null(b, "unless", run->strategy->unless);
    json_put_bool(b, "several_servers", run->several);
    buf_printf(b,
               ",\"users\":%d,\"seats\":%d,\"tries\":%d,\"winners\":%d,\"double_sold\":%d,"
               "\"errors\":%d,\"seconds\":%.6f,\"throughput\":%.1f,\"winners_ms\":",
               run->users, run->seats, run->tries, run->winners, run->double_sold, run->errors,
               run->seconds, run->throughput);
    put_latency(b, &run->winners_ms);
    json_put_name(b, "losers_ms");
    put_latency(b, &run->losers_ms);
    buf_printf(
        b,
        ",\"refused_at_once\":%d,\"round_trips_per_request\":%.4f,\"gate_trips_per_request\":%.4f,"
        "\"commits_per_request\":%.4f",
        run->refused_at_once, run->round_trips_per_request, run->gate_trips_per_request,
        run->commits_per_request);
    json_put_text(b, "verdict", race_verdict_text(run->verdict));
    json_put_text_or_null(b, "why", run->why);
    buf_char(b, '}');
}

static void put_where(struct buf *b, const struct race_result *r)
{
    machine_json(&r->machine, b);
    json_open(b, "versions", '{');
    json_put_text_or_null(b, "holdfast", r->versions.holdfast);
    json_put_text_or_null(b, "postgresql", r->versions.postgresql);
    json_put_text_or_null(b, "redis", r->versions.redis);
    json_put_text_or_null(b, "sqlite", r->versions.sqlite);
    buf_lit(b, "},\"back_end\":{");
    json_put_text(b, "ledger", r->on_postgres ? "postgresql" : "sqlite");
    json_put_text(b, "gate", r->with_gate ? "redis" : NULL);
    buf_char(b, '}');
    json_put_text_or_null(b, "note", r->note);
}

void race_json(const struct race_result *r, struct buf *out)
{
    buf_lit(out, "{\"object\":\"lab.race\"");
    json_put_time(out, "at", r->at_ms);
    put_where(out, r);
    buf_printf(out, ",\"connections_max\":%d,\"retries\":%d,\"runs\":[", RACE_RUNNERS, r->retries);
    for (size_t i = 0; i < r->n_runs; i++)
        put_run(out, &r->runs[i]);
    buf_lit(out, "],\"skipped\":[");
    for (size_t i = 0; i < r->n_skips; i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "strategy", r->skips[i].strategy);
        json_put_text_or_null(out, "why", r->skips[i].why);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    json_put_bool(out, "ok", r->ok);
    buf_char(out, '}');
}
