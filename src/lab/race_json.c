/* See race.h: writes the result as JSON. */
#include <string.h>

#include "lab/race.h"

static void put_text(struct buf *b, const char *text)
{
    if (text && *text)
        buf_json(b, text, strlen(text));
    else
        buf_lit(b, "null");
}

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
    buf_lit(b, "{\"strategy\":");
    put_text(b, run->strategy->name);
    buf_lit(b, ",\"summary\":");
    put_text(b, run->strategy->summary);
    buf_printf(b,
               ",\"promises_correct\":%s,\"unless\":", run->strategy->correct ? "true" : "false");
    put_text(b, run->strategy->unless);
    buf_printf(b, ",\"several_servers\":%s", run->several ? "true" : "false");
    buf_printf(b,
               ",\"users\":%d,\"seats\":%d,\"tries\":%d,\"winners\":%d,\"double_sold\":%d,"
               "\"errors\":%d,\"seconds\":%.6f,\"throughput\":%.1f,\"winners_ms\":",
               run->users, run->seats, run->tries, run->winners, run->double_sold, run->errors,
               run->seconds, run->throughput);
    put_latency(b, &run->winners_ms);
    buf_lit(b, ",\"losers_ms\":");
    put_latency(b, &run->losers_ms);
    buf_printf(
        b,
        ",\"refused_at_once\":%d,\"round_trips_per_request\":%.4f,\"gate_trips_per_request\":%.4f,"
        "\"commits_per_request\":%.4f",
        run->refused_at_once, run->round_trips_per_request, run->gate_trips_per_request,
        run->commits_per_request);
    buf_printf(b, ",\"verdict\":\"%s\",\"why\":", race_verdict_text(run->verdict));
    put_text(b, run->why);
    buf_char(b, '}');
}

static void put_where(struct buf *b, const struct race_result *r)
{
    buf_printf(b, "\"machine\":{\"cpus\":%d,\"model\":", r->machine.cpus);
    put_text(b, r->machine.model);
    buf_printf(b, ",\"memory_bytes\":%lld,\"kernel\":", (long long)r->machine.memory_bytes);
    put_text(b, r->machine.kernel);
    buf_lit(b, "},\"versions\":{\"holdfast\":");
    put_text(b, r->versions.holdfast);
    buf_lit(b, ",\"postgresql\":");
    put_text(b, r->versions.postgresql);
    buf_lit(b, ",\"redis\":");
    put_text(b, r->versions.redis);
    buf_lit(b, ",\"sqlite\":");
    put_text(b, r->versions.sqlite);
    buf_printf(b, "},\"back_end\":{\"ledger\":\"%s\",\"gate\":%s},\"note\":",
               r->on_postgres ? "postgresql" : "sqlite", r->with_gate ? "\"redis\"" : "null");
    put_text(b, r->note);
}

void race_json(const struct race_result *r, struct buf *out)
{
    buf_lit(out, "{\"object\":\"lab.race\",\"at\":");
    buf_json_time(out, r->at_ms);
    buf_char(out, ',');
    put_where(out, r);
    buf_printf(out, ",\"connections_max\":%d,\"retries\":%d,\"runs\":[", RACE_RUNNERS, r->retries);
    for (size_t i = 0; i < r->n_runs; i++) {
        if (i)
            buf_char(out, ',');
        put_run(out, &r->runs[i]);
    }
    buf_lit(out, "],\"skipped\":[");
    for (size_t i = 0; i < r->n_skips; i++) {
        buf_printf(out, "%s{\"strategy\":\"%s\",\"why\":", i ? "," : "", r->skips[i].strategy);
        put_text(out, r->skips[i].why);
        buf_char(out, '}');
    }
    buf_printf(out, "],\"ok\":%s}", r->ok ? "true" : "false");
}
