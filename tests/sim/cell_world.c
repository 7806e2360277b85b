/* The queue of events, the clocks and the trace of a simulated cell (cell_world.h). */
#include "sim/cell_world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cell_check.h"

#define EVENTS_MAX 200000 /* of one run: more means that somebody runs in circles */

/* ---- events ---- */

struct sim_event *sim_at(struct cell_world *w, int64_t at_us,
                         void (*run)(struct cell_world *w, struct sim_event *e), void *on,
                         int64_t number)
{
    struct sim_event *e = hf_alloc(sizeof *e);
    e->run = run;
    e->on = on;
    e->number = number;
    heap_set(&w->events, &e->due, at_us > w->now_us ? at_us : w->now_us);
    return e;
}

static void run_events(struct cell_world *w)
{
    struct heap_node *first;
    while (!w->failure[0] && !w->done && (first = heap_first(&w->events))) {
        struct sim_event *e = heap_item(first, struct sim_event, due);
        heap_remove(&w->events, first);
        w->now_us = first->key;
        if (++w->n_events > EVENTS_MAX)
            sim_fail(w, "too much happens: %d events", EVENTS_MAX);
        e->run(w, e);
        free(e);
    }
}

/* ---- clocks ---- */

static int64_t sim_boot_us(const struct clock *clock)
{
    const struct sim_clock *c = (const struct sim_clock *)(const void *)clock;
    return c->offset_us + c->world->now_us + c->world->now_us * c->ppm / 1000000;
}

static int64_t sim_wall_us(const struct clock *clock)
{
    const struct sim_clock *c = (const struct sim_clock *)(const void *)clock;
    return c->wall_us + c->world->now_us;
}

void sim_clock_init(struct cell_world *w, struct sim_clock *c)
{
    *c = (struct sim_clock){.clock = {sim_boot_us, sim_boot_us, sim_wall_us},
                            .world = w,
                            .offset_us = sim_between(w, 1, 1000) * 1000000,
                            .ppm = sim_between(w, -CELL_CLOCK_PPM, CELL_CLOCK_PPM),
                            .wall_us = 1000000 * sim_between(w, 1000000, 1000060)};
}

int64_t sim_clock_true_us(const struct sim_clock *c, int64_t boot_us)
{
    if (boot_us >= INT64_MAX / 2)
        return INT64_MAX / 2;
    int64_t us = (int64_t)((__int128)(boot_us - c->offset_us) * 1000000 / (1000000 + c->ppm));
    while (us + us * c->ppm / 1000000 + c->offset_us < boot_us)
        us++;
    return us;
}

/* ---- chance ---- */

int64_t sim_between(struct cell_world *w, int64_t from, int64_t to)
{
    return from + (int64_t)random_below(&w->random, (uint64_t)(to - from) + 1);
}

bool sim_chance(struct cell_world *w, int in_1000) { return sim_between(w, 0, 999) < in_1000; }

int64_t sim_delay(struct cell_world *w, int64_t usual_us, int slow_in_1000)
{
    int64_t us = sim_between(w, usual_us / 2, usual_us * 3 / 2);
    return slow_in_1000 && sim_chance(w, slow_in_1000) ? us * sim_between(w, 2, 100) : us;
}

/* ---- the trace, and failures ---- */

#define TRACE_LINES 200
static char trace[TRACE_LINES][240];
static size_t n_trace;

void sim_trace_line(const struct cell_world *w, const char *who, const char *fmt, ...)
{
    char *line = trace[n_trace++ % TRACE_LINES];
    int n = snprintf(line, sizeof trace[0], "%10.3f ms  %-8s ", (double)w->now_us / 1000, who);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, sizeof trace[0] - (size_t)n, fmt, args);
    va_end(args);
    if (getenv("HF_TRACE"))
        fprintf(stderr, "%s\n", line);
}

void cell_world_print_trace(void)
{
    for (size_t i = n_trace > TRACE_LINES ? n_trace - TRACE_LINES : 0; i < n_trace; i++)
        fprintf(stderr, "%s\n", trace[i % TRACE_LINES]);
}

void sim_fail(struct cell_world *w, const char *fmt, ...)
{
    if (w->failure[0])
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->failure, sizeof w->failure, fmt, args);
    va_end(args);
    sim_trace(w, "CHECK", "%s", w->failure);
}

/* ---- a run ---- */

bool cell_world_run(struct cell_world *w, uint64_t seed, bool traced, bool outside_only)
{
    *w = (struct cell_world){.seed = seed, .trace = traced, .outside_only = outside_only};
    n_trace = 0;
    random_init_seeded(&w->random, seed);
    w->journal = sim_journal_new("cell", true);
    faults_draw(w);
    check_open(w);
    for (int i = 0; i < w->weather.servers; i++) {
        struct cell_server *s = &w->servers[i];
        s->world = w;
        s->no = i;
        snprintf(s->url, sizeof s->url, "http://s%d:8080", i);
        snprintf(s->who, sizeof s->who, "s%d", i);
        sim_clock_init(w, &s->clock);
        random_init_seeded(&s->random, random_u64(&w->random));
        server_start(s);
    }
    clients_open(w);
    faults_open(w);
    run_events(w);
    check_end(w);
    return !w->failure[0];
}

void cell_world_close(struct cell_world *w)
{
    struct heap_node *first;
    servers_close(w);
    clients_close(w);
    net_close(w);
    check_close(w);
    while ((first = heap_first(&w->events))) {
        heap_remove(&w->events, first);
        free(heap_item(first, struct sim_event, due));
    }
    heap_close(&w->events);
    sim_journal_free(w->journal);
}
