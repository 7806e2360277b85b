/* What a waiting list costs, in this process, by the build's own engine on a ledger.
 *
 *   build/bench/waits URL
 *
 * URL is that of an empty ledger.  Three events are sold out, and 100,000 entries wait for a seat of
 * each of two.  All of their holds are released, so that each place goes to the next entry: those of
 * one event 200 at a time, which one batch can offer, those of the other all at once.  The holds of
 * the third event, for which nobody waits, are released and made again, 200 at a time.
 * The CPU is that of the whole process, per place.  The bytes of an entry are what malloc
 * has given out for the view of a list of as many entries with one wish, divided by them.  One line
 * of JSON goes to stdout.  Exits with 1 if anything is answered that is not to be measured. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "view/waitlist.h"

#define ENTRIES 100000
#define ROWS 100
#define ROW_SEATS 50
#define SEATS (ROWS * ROW_SEATS)
#define AT_ONCE 200 /* commands; a batch offers up to WAIT_TURNS_MAX places */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int under_way;
static int at_once = AT_ONCE;
static struct engine *engine;

_Noreturn static void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "waits: %s %s\n", what, why);
    exit(1);
}

static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static struct event_def *new_event(void)
{
    struct event_def *def = hf_alloc(sizeof *def);
    struct section_def *section = vec_push(&def->sections);
    def->terms.name = hf_strndup("Bench", 5);
    memcpy(def->currency, "eur", 4);
    def->status = EVENT_OPEN;
    def->terms.hold_ttl_ms = def->terms.hold_max_ms = 86400000;
    def->terms.max_per_hold = 10;
    def->terms.offer_ttl_ms = 86400000;
    def->terms.wait_alive_ms = 10 * INT64_C(86400000);
    def->terms.wait_per_owner = 1;
    section->name = hf_strndup("S", 1);
    *vec_push(&def->terms.prices) = 1000;
    for (int i = 0; i < ROWS; i++) {
        struct row_def *row = vec_push(&section->rows);
        char name[ROW_NAME_SIZE];
        row_name((uint32_t)i, name);
        row->name = hf_strndup(name, strlen(name));
        row->seats = ROW_SEATS;
    }
    if (!event_def_number(def))
        give_up("the event", "is too large");
    return def;
}

/* ---- memory ---- */

static size_t given_out(void) { return mallinfo2().uordblks; }

static double bytes_per_entry(void)
{
    struct event_def *def = new_event();
    def->id.key = 1;
    struct event *e = event_new(def, &(struct clock_row){.event = 1});
    size_t before = given_out();
    for (int64_t i = 1; i <= ENTRIES; i++) {
        const struct wait_row row = {
            .id.key = HOLD_KEY(1, i),
            .event = 1,
            .number = i,
            .rank = i,
            .status = WAIT_WAITING,
            .wish = {.section = -1, .tier = -1, .area = -1, .quantity = 1, .adjacent = 1}};
        waitlist_add(e, &row, (uint64_t)i);
    }
    size_t after = given_out();
    event_free(e);
    return (double)(after - before) / ENTRIES;
}

/* ---- commands ---- */

static void on_done(struct pending *pending)
{
    struct command *c = pending->waiter;
    if (!verdict_is_success(c->verdict))
        give_up("a command failed:", verdict_text(c->verdict));
    pthread_mutex_lock(&lock);
    if (!--under_way)
        pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

/* Submits the commands at once, and waits for all of them. */
static void run_batch(struct command *commands, int n)
{
    pthread_mutex_lock(&lock);
    under_way = n;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n; i++) {
        commands[i].pending = (struct pending){.done = on_done, .waiter = &commands[i]};
        if (engine_submit(engine, &commands[i]) != HF_OK)
            give_up("the engine", "is overloaded");
    }
    pthread_mutex_lock(&lock);
    while (under_way)
        pthread_cond_wait(&wake, &lock);
    pthread_mutex_unlock(&lock);
}

static void run(struct command *commands, int n)
{
    for (int i = 0; i < n; i += at_once)
        run_batch(&commands[i], n - i < at_once ? n - i : at_once);
}

static struct event *create_event(void)
{
    struct command create = {.kind = CMD_EVENT_CREATE, .event_create = new_event()};
    run(&create, 1);
    struct command load = {.kind = CMD_EVENT_LOAD, .event_key = create.event_create->id.key};
    run(&load, 1);
    command_close(&create);
    return load.event; /* it stays pinned */
}

/* Holds every seat of the event, each by itself. */
static void hold_all(struct event *e, struct id holds[SEATS])
{
    struct command *commands = hf_alloc(SEATS * sizeof *commands);
    uint32_t seats[SEATS], taken[SEATS][2];
    for (uint32_t i = 0; i < SEATS; i++) {
        seats[i] = i;
        commands[i] = (struct command){
            .kind = CMD_HOLD_CREATE,
            .event = e,
            .create = {.seats = &seats[i], .n_seats = 1, .shortage.taken = taken[i]}};
    }
    run(commands, SEATS);
    for (uint32_t i = 0; i < SEATS; i++) {
        holds[i] = commands[i].create.hold.id;
        command_close(&commands[i]);
    }
    free(commands);
}

static void release_all(struct event *e, const struct id holds[SEATS])
{
    struct command *commands = hf_alloc(SEATS * sizeof *commands);
    for (uint32_t i = 0; i < SEATS; i++) {
        commands[i] = (struct command){.kind = CMD_HOLD_RELEASE, .event = e};
        command_named_hold(&commands[i])->id = holds[i];
    }
    run(commands, SEATS);
    for (uint32_t i = 0; i < SEATS; i++)
        command_close(&commands[i]);
    free(commands);
}

static void join(struct event *e, int n_entries)
{
    struct command *commands = hf_alloc(SEATS * sizeof *commands);
    for (int n = 0; n < n_entries; n += SEATS) {
        int more = n_entries - n < SEATS ? n_entries - n : SEATS;
        for (int i = 0; i < more; i++)
            commands[i] = (struct command){
                .kind = CMD_WAIT_JOIN,
                .event = e,
                .wait_join.wish = {
                    .section = -1, .tier = -1, .area = -1, .quantity = 1, .adjacent = 1}};
        run(commands, more);
        for (int i = 0; i < more; i++)
            command_close(&commands[i]);
    }
    free(commands);
}

/* What it costs to offer all places of a new event, `burst` of them at once, per place. */
static double free_all(int burst, double *ret_join_us)
{
    static struct id holds[SEATS];
    struct event *e = create_event();
    hold_all(e, holds);
    int64_t begun = cpu_us();
    join(e, ENTRIES);
    *ret_join_us = (double)(cpu_us() - begun) / ENTRIES;
    at_once = burst;
    begun = cpu_us();
    release_all(e, holds);
    join(e, 1); /* is decided when all that is free has been offered */
    double us = (double)(cpu_us() - begun) / SEATS;
    at_once = AT_ONCE;
    if (e->waitlist->n_offered != SEATS || e->waitlist->n_waiting != ENTRIES + 1 - SEATS)
        give_up("a place", "was not offered");
    return us;
}

int main(int argc, char **argv)
{
    static struct id holds[SEATS];
    struct hf_err err = {0};
    double bytes = bytes_per_entry();
    struct engine_config config = {.clock = &clock_system, .metrics = metrics_new()};
    if (argc != 2)
        give_up("usage:", "waits URL");
    config.ledger_url = argv[1];
    if (engine_start(&config, &engine, &err) != HF_OK)
        give_up("the engine does not start:", err.msg);
    struct event *plain = create_event();
    hold_all(plain, holds);
    int64_t begun = cpu_us();
    release_all(plain, holds);
    hold_all(plain, holds);
    int64_t pairs_us = cpu_us() - begun;
    double join_us, free_us = free_all(AT_ONCE, &join_us), burst_us = free_all(SEATS, &join_us);
    printf("{\"pair_us\":%.2f,\"free_us\":%.2f,\"burst_us\":%.2f,\"join_us\":%.2f,"
           "\"bytes\":%.1f}\n",
           (double)pairs_us / SEATS, free_us, burst_us, join_us, bytes);
    engine_stop(engine);
    metrics_free(config.metrics);
    return 0;
}
