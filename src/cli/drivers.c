/* `holdfast drivers`: the coordinators and what each declares about itself (hf_drivers).  Main
 * thread. */
#include <getopt.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/json_put.h"
#include "cli/common.h"

static const char usage[] =
    "usage: holdfast drivers [--json]\n"
    "Lists the coordinators that can keep locks, and what each of them can do.\n";

static const char *fence_name(enum hf_fence_source source)
{
    static const char *const names[] = {"none", "counter", "durable", "server-clock", "consensus"};
    return (size_t)source < sizeof names / sizeof *names ? names[source] : "?";
}

/* The failures of enum hf_overlap. */
static const struct {
    uint64_t bit;
    const char *name, *text;
} overlaps[] = {
    {HF_OVERLAP_CLOCK, "clock", "a server's clock is set or runs at another rate"},
    {HF_OVERLAP_RESTART, "restart", "a server restarts without its data"},
    {HF_OVERLAP_FAILOVER, "failover", "a replica takes over that had not heard of the lease"},
    {HF_OVERLAP_LEADER, "leader", "a leader that was stopped resumes"},
};
#define N_OVERLAPS (sizeof overlaps / sizeof *overlaps)

static void put_overlaps(struct buf *b, uint64_t mask)
{
    const char *between = "";
    buf_lit(b, "  overlaps  ");
    if (!mask)
        buf_lit(b, "none known");
    for (size_t i = 0; i < N_OVERLAPS; i++) {
        if (!(mask & overlaps[i].bit))
            continue;
        buf_printf(b, "%s%s", between, overlaps[i].text);
        between = "; ";
    }
    buf_char(b, '\n');
}

static void put_overlaps_json(struct buf *b, uint64_t mask)
{
    json_open(b, "overlaps", '[');
    for (size_t i = 0; i < N_OVERLAPS; i++)
        if (mask & overlaps[i].bit)
            json_put_text(b, NULL, overlaps[i].name);
    buf_char(b, ']');
}

static void put_text(struct buf *b, const struct hf_driver_info *d)
{
    char least[DURATION_TEXT_SIZE], most[DURATION_TEXT_SIZE];
    buf_printf(b, "%s\n  url       %s\n  fence     %s\n  modes     exclusive%s%s%s%s\n", d->name,
               d->url, fence_name(d->fence), d->shared ? ", shared" : "", d->slots ? ", slots" : "",
               d->priority ? ", priority" : "", d->fair ? ", first come first served" : "");
    buf_printf(b, "  holders   %s\n", d->processes ? "any process" : "this process only");
    buf_printf(b, "  ends      %s\n",
               d->outlives ? "on release or after its TTL"
                           : "on release, after its TTL, or with its process");
    buf_printf(b, "  ttl       %s to %s; %s\n", duration_text(least, d->ttl_min_ms),
               duration_text(most, d->ttl_max_ms), d->ttl);
    buf_printf(b, "  names     up to %zu bytes\n  survives  %s\n", d->name_len_max, d->survives);
    put_overlaps(b, d->overlaps);
    if (d->beware)
        buf_printf(b, "  beware    %s\n", d->beware);
}

static void put_json(struct buf *b, const struct hf_driver_info *d)
{
    json_open(b, NULL, '{');
    json_put_text(b, "name", d->name);
    json_put_text(b, "url", d->url);
    json_put_text(b, "fence", fence_name(d->fence));
    json_put_bool(b, "processes", d->processes);
    json_put_bool(b, "outlives", d->outlives);
    json_put_bool(b, "fair", d->fair);
    json_put_bool(b, "shared", d->shared);
    json_put_bool(b, "priority", d->priority);
    json_put_bool(b, "slots", d->slots);
    json_put_int(b, "ttl_min_ms", d->ttl_min_ms);
    json_put_int(b, "ttl_max_ms", d->ttl_max_ms);
    json_put_int(b, "name_len_max", (int64_t)d->name_len_max);
    json_put_text(b, "ttl", d->ttl);
    json_put_text(b, "survives", d->survives);
    put_overlaps_json(b, d->overlaps);
    json_put_text(b, "beware", d->beware ? d->beware : "");
    buf_char(b, '}');
}

int cli_drivers(int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {{"json", CLI_TRUE, .to = &json}, {0}};
    int code = cli_options("drivers", argc, argv, options, usage);
    if (code >= 0)
        return code;
    if (optind != argc)
        return cli_misused("drivers", "unexpected operand %.60s", argv[optind]);
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    struct buf b = {0};
    buf_str(&b, json ? "[" : "");
    for (size_t i = 0; i < n; i++) {
        buf_str(&b, i && !json ? "\n" : "");
        (json ? put_json : put_text)(&b, drivers[i]);
    }
    buf_str(&b, json ? "]\n" : "");
    return cli_print(&b) ? EXIT_SUCCESS : EXIT_NO_BACK_END;
}
