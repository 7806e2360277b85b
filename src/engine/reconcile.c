/* The reconciler: every 30 s what is remembered is compared with the ledger, which is right.
 *   view      this server's own events, a slice of seats at a time, by their worker under the lock
 *   gate      by one server at a time (an advisory lock of the ledger): entries whose hold is over
 *             are deleted, live holds without an entry get one, counts that differ are deleted,
 *             keys that say nothing are deleted
 * Each repair is counted by kind; on a healthy system none is needed but after a gate was lost.
 * Between rounds the thread asks whether a lost gate answers again (keeps I12).
 *
 * The gate is read before the ledger, so an entry found over is over: holds never come back to
 * life.  A hold that ends while its missing entry is put back is looked at again, and the entry
 * goes. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "engine/internal.h"

#define EVERY_MS 30000
#define TICK_MS 500      /* how often the gate is asked whether it is there */
#define SLICE_SEATS 4096 /* compared at once, under the event's lock */
#define SLICE_PAUSE_MS 10
#define HOLDS_CHUNK 500
#define LOCK_NUMBER 0x686f6c64 /* of the advisory lock */
#define LOOK_TIMEOUT_MS 5000
#define LOOK_AGAIN_MS 300

const char *const repair_names[REPAIRS] = {"view", "gate_stale", "gate_missing", "gate_count",
                                           "gate_strange"};

/* A seat's entry in the gate. */
struct entry {
    int64_t seat, hold;
};

struct reconciler {
    struct engine *engine;
    struct ledger *ledger;
    struct gate *gate; /* NULL: none */
    pthread_t thread;
    bool running;

    /* a round's findings */
    VEC(struct entry) entries; /* in the gate, by seat once sorted */
    VEC(struct gate_count) counts;
    VEC(char *) strange;
    VEC(struct gate_seat) fixes;
    VEC(int64_t) restored; /* holds that got entries back */
    int64_t now;
    int64_t first_us; /* when `now` was read first, which the TTLs of `fixes` count from */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool compared, stopping;
};

static void repaired(struct reconciler *r, enum repair kind, size_t n)
{
    if (!n)
        return;
    counter_add(r->engine->metrics.repairs[kind], n);
    log_write(LOG_WARN, "reconciled", "what", repair_names[kind], "repairs", LOG_INT(n), NULL);
}

/* Sleeps; true: time to stop. */
static bool pause_for(struct reconciler *r, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping && pthread_cond_timedwait(&r->wake, &r->lock, &until) == 0)
        ;
    bool stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return stopping;
}

/* Asked before each call of the gate, which may wait for seconds. */
static bool is_stopping(struct reconciler *r) { return pause_for(r, 0); }

/* ---- the view ---- */

struct slice {
    const struct event *event;
    uint32_t next, last; /* seats before `next` have been compared */
    bool same;
};

static void compare_free(struct slice *s, uint32_t until)
{
    for (; s->next < until; s->next++)
        s->same &= s->event->seats[s->next].status == SEAT_AVAILABLE;
}

static void compare_seat(void *ctx, uint32_t index, enum seat_status status, int64_t hold)
{
    struct slice *s = ctx;
    if (index > s->last || index < s->next)
        return;
    compare_free(s, index);
    s->same &= s->event->seats[index].status == status && s->event->seats[index].hold == hold;
    s->next = index + 1;
}

static void compare_area(void *ctx, uint32_t index, int64_t held, int64_t booked)
{
    struct slice *s = ctx;
    s->same &= index < s->event->def->areas.n && s->event->areas[index].held == held &&
               s->event->areas[index].booked == booked;
}

/* The event is locked, and the view has caught up. */
static enum hf_status compare_slice(struct worker *w, struct event *e, uint32_t first,
                                    bool *ret_same, struct hf_err *err)
{
    int64_t key = e->def->id.key;
    uint32_t n = e->def->n_seats, end = n - first > SLICE_SEATS ? first + SLICE_SEATS : n;
    struct slice s = {.event = e, .next = first, .last = end ? end - 1 : 0, .same = true};
    enum hf_status status = HF_OK;
    if (end > first)
        status = ledger_seats_read(w->ledger, key, first, s.last, compare_seat, &s, err);
    if (status != HF_OK)
        return status;
    compare_free(&s, end);
    if (first == 0) {
        enum event_status open = e->status_draft;
        status = ledger_event_state(w->ledger, key, &open, compare_area, &s, err);
        s.same &= open == e->status_draft;
    }
    *ret_same = s.same;
    return status;
}

void reconcile_compare(struct worker *w, struct command *c)
{
    struct event *e = c->event;
    bool same = true;
    batch_read_clear(&w->read);
    *vec_push(&w->read.clocks) = e->clock;
    c->status = ledger_begin(w->ledger, &c->err);
    if (c->status == HF_OK)
        c->status = ledger_batch_read(w->ledger, &w->read, &c->err);
    if (c->status == HF_OK && !e->stale && catch_up(w->view, e, &w->read.since) &&
        e->clock.seq == w->read.clocks.v[0].seq)
        c->status = compare_slice(w, e, (uint32_t)c->at, &same, &c->err);
    if (c->status == HF_OK && !same) {
        c->n_taken = 1; /* a repair */
        c->status = load_again(w->ledger, w->view, e, &c->err);
    }
    ledger_rollback(w->ledger);
    worker_note_holds(w);
}

/* A command that its worker hands back to us. */
struct comparison {
    struct command command; /* first: it is what `done` gets */
    struct reconciler *reconciler;
};

static void on_compared(struct command *c)
{
    struct reconciler *r = ((struct comparison *)c)->reconciler;
    pthread_mutex_lock(&r->lock);
    r->compared = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

/* False: stop. */
static bool compare_event(struct reconciler *r, struct event *e)
{
    struct comparison *c = hf_alloc(sizeof *c);
    uint32_t first = 0;
    bool go_on = true;
    c->reconciler = r;
    do {
        c->command =
            (struct command){.kind = CMD_COMPARE, .event = e, .at = first, .done = on_compared};
        pthread_mutex_lock(&r->lock);
        r->compared = false;
        pthread_mutex_unlock(&r->lock);
        if (!lane_pass(&engine_worker(r->engine, e->def->id.key)->work, &c->command))
            break;
        pthread_mutex_lock(&r->lock);
        while (!r->compared)
            pthread_cond_wait(&r->wake, &r->lock);
        pthread_mutex_unlock(&r->lock);
        if (c->command.n_taken) {
            repaired(r, REPAIR_VIEW, 1);
            break; /* the whole event was read again */
        }
        first += SLICE_SEATS;
        go_on = !pause_for(r, SLICE_PAUSE_MS);
    } while (go_on && c->command.status == HF_OK && first < e->def->n_seats);
    free(c);
    return go_on;
}

static void compare_views(struct reconciler *r)
{
    struct loaded loaded = {0};
    engine_list_loaded(r->engine, &loaded);
    for (size_t i = 0; i < loaded.events.n; i++)
        if (!compare_event(r, loaded.events.v[i]))
            break;
    vec_close(&loaded.events);
}

/* ---- the gate ---- */

static void saw_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    (void)ttl_ms;
    struct reconciler *r = ctx;
    *vec_push(&r->entries) = (struct entry){.seat = SEAT_KEY(event, seat), .hold = hold};
}

static void saw_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    struct reconciler *r = ctx;
    *vec_push(&r->counts) =
        (struct gate_count){.event = event, .area = area, .seq = seq, .available = available};
}

static void saw_strange(void *ctx, const char *key, size_t len)
{
    struct reconciler *r = ctx;
    *vec_push(&r->strange) = hf_strndup(key, len);
}

static bool stops(void *ctx) { return is_stopping(ctx); }

static int entry_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->seat > y->seat) - (x->seat < y->seat);
}

static int fix_order(const void *a, const void *b)
{
    const struct gate_seat *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static int64_t now_us(const struct reconciler *r)
{
    return clock_monotonic_us(r->engine->config.clock);
}

/* Looking took its time: what is left of each TTL now.  An entry must not outlive its hold. */
static void shorten(struct reconciler *r)
{
    int64_t since_ms = (now_us(r) - r->first_us) / 1000 + 1;
    size_t kept = 0;
    for (size_t i = 0; i < r->fixes.n; i++) {
        struct gate_seat f = r->fixes.v[i];
        if (f.ttl_ms && f.ttl_ms <= since_ms)
            continue;
        f.ttl_ms -= f.ttl_ms ? since_ms : 0;
        r->fixes.v[kept++] = f;
    }
    r->fixes.n = kept;
}

static bool fix(struct reconciler *r, struct hf_fault *fault)
{
    static const uint8_t nobody[GATE_TOKEN_SIZE]; /* claims nothing */
    if (r->fixes.n > 1)
        qsort(r->fixes.v, r->fixes.n, sizeof *r->fixes.v, fix_order);
    bool done = !r->fixes.n ||
                (!is_stopping(r) &&
                 gate_settle(r->gate, nobody, r->fixes.v, r->fixes.n, NULL, 0, fault) == HF_DONE);
    vec_clear(&r->fixes);
    return done;
}

static bool owns(const struct hold_row *row, int64_t seat, int64_t now)
{
    if (row->event != seat >> 32 || (row->status != HOLD_ACTIVE && row->status != HOLD_CONFIRMED) ||
        (row->status == HOLD_ACTIVE && row->expires_at <= now))
        return false;
    for (uint32_t i = 0; i < row->n_seats; i++)
        if (row->seats[i] == SEAT_INDEX(seat))
            return true;
    return false;
}

/* The holds of n things, HOLDS_CHUNK an exchange.  Each thing has `size` bytes and names its hold
 * `offset` bytes from its beginning. */
static enum hf_status
read_holds(struct reconciler *r, const void *things, size_t size, size_t offset, size_t n,
           void (*each)(struct reconciler *r, size_t i, const struct hold_row *row),
           struct hf_err *err)
{
    int64_t keys[HOLDS_CHUNK];
    struct hold_row rows[HOLDS_CHUNK];
    enum hf_status status = HF_OK;
    for (size_t at = 0; at < n && status == HF_OK; at += HOLDS_CHUNK) {
        size_t len = n - at < HOLDS_CHUNK ? n - at : HOLDS_CHUNK;
        for (size_t i = 0; i < len; i++)
            memcpy(&keys[i], (const char *)things + (at + i) * size + offset, sizeof keys[i]);
        status = ledger_holds_read(r->ledger, keys, len, rows, err);
        for (size_t i = 0; i < len; i++) {
            if (status == HF_OK)
                each(r, at + i, &rows[i]);
            hold_row_close(&rows[i]);
        }
    }
    return status;
}

/* An entry whose hold is over, or never was. */
static void find_stale(struct reconciler *r, size_t i, const struct hold_row *row)
{
    const struct entry *e = &r->entries.v[i];
    if (!owns(row, e->seat, r->now))
        *vec_push(&r->fixes) = (struct gate_seat){
            .event = e->seat >> 32, .seat = SEAT_INDEX(e->seat), .hold = e->hold};
}

/* Seats of live holds that have no entry. */
static void find_missing(void *ctx, const struct hold_row *row)
{
    struct reconciler *r = ctx;
    bool any = false;
    for (uint32_t i = 0; i < row->n_seats; i++) {
        const struct entry want = {.seat = SEAT_KEY(row->event, row->seats[i])};
        const struct entry *there =
            r->entries.n ? bsearch(&want, r->entries.v, r->entries.n, sizeof want, entry_order)
                         : NULL;
        int64_t ttl_ms = row->expires_at - GATE_EARLY_MS - r->now;
        if ((there && there->hold == row->id.key) || ttl_ms <= 0)
            continue;
        any = true;
        *vec_push(&r->fixes) = (struct gate_seat){
            .event = row->event, .seat = row->seats[i], .hold = row->id.key, .ttl_ms = ttl_ms};
    }
    if (any)
        *vec_push(&r->restored) = row->id.key;
}

/* A missing one whose hold is not any more what find_missing saw: no fix. */
static void drop_if_over(struct reconciler *r, size_t i, const struct hold_row *row)
{
    bool lives = row->status == HOLD_ACTIVE && row->expires_at - GATE_EARLY_MS > r->now;
    if (r->fixes.v[i].ttl_ms && !lives)
        r->fixes.v[i].hold = 0;
}

/* What servers are doing at this moment is not drift: only what a second look finds, too, is put
 * right and counted.  True: the fixes are those. */
static bool look_again(struct reconciler *r, const struct gate_sight *sight)
{
    struct hf_fault fault = {0};
    struct hf_err err = {0};
    size_t kept = 0;
    if (!r->fixes.n)
        return true;
    vec_clear(&r->entries);
    for (size_t i = 0; i < r->strange.n; i++)
        free(r->strange.v[i]);
    vec_clear(&r->strange);
    vec_clear(&r->counts);
    if (pause_for(r, LOOK_AGAIN_MS) || gate_look(r->gate, sight, &fault) != HF_DONE ||
        ledger_now(r->ledger, &r->now, &err) != HF_OK)
        return false;
    if (r->entries.n > 1)
        qsort(r->entries.v, r->entries.n, sizeof *r->entries.v, entry_order);
    for (size_t i = 0; i < r->fixes.n; i++) {
        const struct gate_seat f = r->fixes.v[i];
        const struct entry want = {.seat = SEAT_KEY(f.event, f.seat)};
        const struct entry *there =
            r->entries.n ? bsearch(&want, r->entries.v, r->entries.n, sizeof want, entry_order)
                         : NULL;
        bool same = there && there->hold == f.hold;
        if (f.ttl_ms ? !same : same)
            r->fixes.v[kept++] = f;
    }
    r->fixes.n = kept;
    if (!kept || read_holds(r, r->fixes.v, sizeof *r->fixes.v, offsetof(struct gate_seat, hold),
                            kept, drop_if_over, &err) != HF_OK)
        return !kept;
    kept = 0;
    for (size_t i = 0; i < r->fixes.n; i++)
        if (r->fixes.v[i].hold)
            r->fixes.v[kept++] = r->fixes.v[i];
    r->fixes.n = kept;
    return true;
}

/* One that was restored and ended meanwhile: its entries are to go again. */
static void find_ended(struct reconciler *r, size_t i, const struct hold_row *row)
{
    (void)i;
    for (uint32_t s = 0; row->status != HOLD_ACTIVE && s < row->n_seats; s++)
        *vec_push(&r->fixes) =
            (struct gate_seat){.event = row->event, .seat = row->seats[s], .hold = row->id.key};
}

struct area_now {
    uint32_t area;
    int64_t held, booked;
    bool found;
};

static void area_now(void *ctx, uint32_t index, int64_t held, int64_t booked)
{
    struct area_now *a = ctx;
    if (index == a->area)
        *a = (struct area_now){index, held, booked, true};
}

/* A count is wrong if the event has not come so far, or says otherwise at that very seq. */
static enum hf_status fix_counts(struct reconciler *r, struct hf_err *err, struct hf_fault *fault)
{
    size_t wrong = 0;
    for (size_t i = 0; i < r->counts.n; i++) {
        struct gate_count *c = &r->counts.v[i];
        struct area_now now = {.area = c->area};
        struct event_def *def = NULL;
        struct clock_row clock = {0};
        enum event_status open;
        enum hf_status status = ledger_begin(r->ledger, err); /* one moment */
        if (status == HF_OK)
            status = ledger_event_read(r->ledger, c->event, &def, &clock, err);
        if (status == HF_OK && def)
            status = ledger_event_state(r->ledger, c->event, &open, area_now, &now, err);
        ledger_rollback(r->ledger);
        bool bad = !def || !now.found || c->seq > clock.seq ||
                   (c->seq == clock.seq &&
                    c->available != def->areas.v[c->area].capacity - now.held - now.booked);
        event_def_free(def);
        if (status != HF_OK)
            return status;
        if (bad)
            r->counts.v[wrong++] = *c;
    }
    static const uint8_t nobody[GATE_TOKEN_SIZE];
    if (wrong && !is_stopping(r) &&
        gate_settle(r->gate, nobody, NULL, 0, r->counts.v, wrong, fault) == HF_DONE)
        repaired(r, REPAIR_GATE_COUNT, wrong);
    return HF_OK;
}

static void fix_strange(struct reconciler *r, struct hf_fault *fault)
{
    for (size_t i = 0; i < r->strange.n && !is_stopping(r); i++) {
        const char *key = r->strange.v[i];
        size_t len = strlen(key);
        if (gate_drop(r->gate, &key, &len, 1, fault) == HF_DONE)
            repaired(r, REPAIR_GATE_STRANGE, 1);
    }
}

static void forget_findings(struct reconciler *r)
{
    for (size_t i = 0; i < r->strange.n; i++)
        free(r->strange.v[i]);
    vec_clear(&r->strange);
    vec_clear(&r->entries);
    vec_clear(&r->counts);
    vec_clear(&r->fixes);
    vec_clear(&r->restored);
}

static void compare_gate(struct reconciler *r)
{
    struct hf_fault fault = {0};
    struct hf_err err = {0};
    const struct gate_sight sight = {r, saw_seat, saw_count, saw_strange, stops};
    forget_findings(r);
    if (gate_look(r->gate, &sight, &fault) != HF_DONE)
        return; /* whoever needs it notices, too */
    if (r->entries.n > 1)
        qsort(r->entries.v, r->entries.n, sizeof *r->entries.v, entry_order);
    r->first_us = now_us(r);
    enum hf_status status = ledger_now(r->ledger, &r->now, &err);
    if (status == HF_OK)
        status = read_holds(r, r->entries.v, sizeof *r->entries.v, offsetof(struct entry, hold),
                            r->entries.n, find_stale, &err);
    if (status == HF_OK)
        status = ledger_holds_live(r->ledger, r->now, find_missing, r, &err);
    if (status == HF_OK && look_again(r, &sight)) {
        shorten(r);
        size_t stale = 0, n = r->fixes.n;
        for (size_t i = 0; i < n; i++)
            stale += r->fixes.v[i].ttl_ms == 0;
        if (fix(r, &fault)) {
            repaired(r, REPAIR_GATE_STALE, stale);
            repaired(r, REPAIR_GATE_MISSING, n - stale);
        }
    }
    vec_clear(&r->fixes);
    if (status == HF_OK)
        status =
            read_holds(r, r->restored.v, sizeof *r->restored.v, 0, r->restored.n, find_ended, &err);
    if (status == HF_OK && fix(r, &fault))
        status = fix_counts(r, &err, &fault);
    fix_strange(r, &fault);
    forget_findings(r);
    if (status != HF_OK)
        log_write(LOG_WARN, "the gate could not be compared", "why", err.msg, NULL);
}

/* ---- the thread ---- */

/* Whether a lost one is back, and whether one that nobody uses just now is there. */
static void ask_gate(struct reconciler *r)
{
    struct hf_fault fault = {0};
    struct engine *e = r->engine;
    if (!r->gate)
        return;
    bool answers = gate_ping(r->gate, &fault) == HF_DONE;
    if (!answers && atomic_load(&e->gate_up))
        engine_gate_failed(e, &fault);
    else if (answers && !atomic_exchange(&e->gate_up, true))
        log_write(LOG_INFO, "the gate answers again", NULL);
}

/* The lock is given back after each round: whoever has it may lose the gate, or be stopped, and
 * another is to go on. */
static void compare_gate_if_locked(struct reconciler *r)
{
    struct hf_err err = {0};
    bool locked = false;
    if (!r->gate || !atomic_load(&r->engine->gate_up) ||
        ledger_try_lock(r->ledger, LOCK_NUMBER, &locked, &err) != HF_OK || !locked)
        return;
    compare_gate(r);
    if (ledger_unlock_all(r->ledger, &err) != HF_OK)
        log_write(LOG_WARN, "the reconciler's lock was not given back", "why", err.msg, NULL);
}

static void *reconciler_main(void *arg)
{
    struct reconciler *r = arg;
    struct engine *e = r->engine;
    int64_t every_ms = e->config.reconcile_every_ms ? e->config.reconcile_every_ms : EVERY_MS;
    int64_t left_ms = every_ms;
    while (!pause_for(r, left_ms < TICK_MS ? left_ms : TICK_MS)) {
        left_ms -= left_ms < TICK_MS ? left_ms : TICK_MS;
        ask_gate(r);
        if (left_ms > 0)
            continue;
        left_ms = every_ms;
        compare_views(r);
        compare_gate_if_locked(r);
    }
    return NULL;
}

enum hf_status reconciler_start(struct engine *e, struct hf_err *err)
{
    struct reconciler *r = hf_alloc(sizeof *r);
    struct db_options options = engine_db_options(e);
    struct hf_fault fault = {0};
    pthread_condattr_t attr;
    e->reconciler = r;
    r->engine = e;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &attr);
    pthread_condattr_destroy(&attr);
    enum hf_status status = ledger_open(e->config.ledger_url, &options, &r->ledger, err);
    if (status == HF_OK && e->config.gate_url &&
        gate_open(e->config.gate_url, e->config.clock, LOOK_TIMEOUT_MS, &r->gate, &fault) !=
            HF_DONE)
        status = hf_err_set(err, HF_INVALID_REQUEST, "the gate: %s", fault.msg);
    if (status == HF_OK && pthread_create(&r->thread, NULL, reconciler_main, r) != 0)
        status = hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    r->running = status == HF_OK;
    return status;
}

void reconciler_ask_to_stop(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r || !r->running)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

void reconciler_stop(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r || !r->running)
        return;
    reconciler_ask_to_stop(e);
    pthread_join(r->thread, NULL);
    r->running = false;
}

void reconciler_free(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r)
        return;
    forget_findings(r);
    vec_close(&r->entries);
    vec_close(&r->counts);
    vec_close(&r->strange);
    vec_close(&r->fixes);
    vec_close(&r->restored);
    ledger_close(r->ledger);
    gate_close(r->gate);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r);
    e->reconciler = NULL;
}
