/* See locks.h: writes the result as JSON. */
#include "base/json_put.h"
#include "lab/locks.h"

/* Begins an object, or writes the whole of one that has only a reason.  Returns whether the caller
 * has to write the rest. */
static bool begin(struct buf *b, const char *why)
{
    json_open(b, NULL, '{');
    json_put_text_or_null(b, "why", why);
    if (*why)
        buf_char(b, '}');
    return !*why;
}

static void put_speed(struct buf *b, const struct locks_speed *s)
{
    if (begin(b, s->why))
        buf_printf(b, ",\"n\":%llu,\"per_second\":%.1f,\"p50_us\":%.0f,\"p99_us\":%.0f}",
                   (unsigned long long)s->n, s->per_second, s->p50_us, s->p99_us);
}

static void put_crowd(struct buf *b, const struct locks_crowd *c)
{
    if (begin(b, c->why))
        buf_printf(b,
                   ",\"waiters\":%d,\"n\":%llu,\"p50_us\":%.0f,\"p99_us\":%.0f,\"pairs\":%llu,"
                   "\"in_order\":%llu,\"overlaps\":%llu,\"fences_fell\":%llu}",
                   c->waiters, (unsigned long long)c->n, c->p50_us, c->p99_us,
                   (unsigned long long)c->pairs, (unsigned long long)c->in_order,
                   (unsigned long long)c->overlaps, (unsigned long long)c->fences_fell);
}

static void put_traffic(struct buf *b, const struct locks_traffic *t)
{
    if (begin(b, t->why))
        buf_printf(b, ",\"waiters\":%d,\"n\":%llu,\"messages\":%.2f,\"bytes\":%.0f}", t->waiters,
                   (unsigned long long)t->n, t->messages, t->bytes);
}

static void put_fault(struct buf *b, const struct locks_fault *f)
{
    if (begin(b, f->why))
        buf_printf(b,
                   ",\"ttl_ms\":%lld,\"locks\":%d,\"overlapped\":%d,\"kept\":%d,\"stuck\":%d,"
                   "\"grants\":%llu,\"overlaps\":%llu,\"fences_fell\":%llu,\"gap_p50_ms\":%.1f,"
                   "\"gap_max_ms\":%.1f,\"outage_ms\":%.1f,\"declared\":%s}",
                   (long long)f->ttl_ms, f->locks, f->overlapped, f->kept, f->stuck,
                   (unsigned long long)f->grants, (unsigned long long)f->overlaps,
                   (unsigned long long)f->fences_fell, f->gap_p50_ms, f->gap_max_ms, f->outage_ms,
                   f->is_declared ? "true" : "false");
}

static void put_row(struct buf *b, const struct locks_row *row)
{
    json_open(b, NULL, '{');
    json_put_text_or_null(b, "driver", row->driver);
    json_put_text_or_null(b, "version", row->version);
    json_put_text_or_null(b, "why", row->why);
    if (row->why[0]) {
        buf_char(b, '}');
        return;
    }
    json_put_name(b, "speed");
    put_speed(b, &row->speed);
    json_open(b, "hand_over", '[');
    for (int i = 0; i < LOCKS_CROWDS; i++)
        put_crowd(b, &row->crowds[i]);
    buf_lit(b, "],\"traffic\":");
    put_traffic(b, &row->traffic);
    json_open(b, "faults", '{');
    for (enum locks_fault_kind kind = 0; kind < LOCKS_FAULTS; kind++) {
        json_put_name(b, locks_fault_name(kind));
        put_fault(b, &row->faults[kind]);
    }
    buf_lit(b, "}}");
}

void locks_json(const struct locks_result *r, struct buf *out)
{
    buf_lit(out, "{\"object\":\"lab.locks\"");
    json_put_time(out, "at", r->at_ms);
    machine_json(&r->machine, out);
    json_put_text_or_null(out, "holdfast", r->holdfast);
    buf_printf(out, ",\"took_s\":%.1f,\"seconds\":%g,\"ttl_ms\":%lld,\"faults\":{", r->seconds,
               r->settings.seconds, (long long)r->settings.ttl_ms);
    for (enum locks_fault_kind kind = 0; kind < LOCKS_FAULTS; kind++)
        json_put_text_or_null(out, locks_fault_name(kind), locks_fault_title(kind));
    buf_lit(out, "},\"drivers\":[");
    for (size_t i = 0; i < r->n; i++)
        put_row(out, &r->rows[i]);
    buf_char(out, ']');
    json_put_bool(out, "ok", r->ok);
    buf_char(out, '}');
}
