/* See locks.h: what becomes of locks when something breaks.  Each fault strikes several locks at
 * once.  Each lock has three clients: the holder, the rival, who waits in the queue, and the
 * visitor, who does not wait but asks every 20 ms:
 *
 *   holders take their locks, the others ask; the fault strikes;
 *   until others have had every lock, or for SETTLE of the TTL: see what happens;
 *   holders that still have their locks release them; others should get every lock now;
 *   what the fault has left broken is repaired.
 *
 * Of three servers the fault strikes the second.  Where that could make a difference the third
 * cannot be reached by the holders, but by the others: the case in which a majority hangs on one
 * server.  Main thread. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/locks_stage.h"

#define HOUR_S 3600
#define HOLD_MS 20 /* how long a rival holds a lock */
#define START_MS_MAX 20000
#define STOP_MS_MAX 4000
#define LOOK_MS 5
#define SETTLE(ttl_ms) ((ttl_ms) + (ttl_ms) / 4 + 300)
#define RECOVER(ttl_ms) (2 * (ttl_ms) + 2000)

/* A fault under way. */
struct strike {
    struct locks_stage *stage;
    size_t locks;
    int64_t ttl_ms;
    int64_t at_us; /* when it struck */
    double outage_ms;
    struct hf_err err;
};

static size_t holder_of(size_t lock) { return lock; }
static size_t rival_of(const struct strike *k, size_t lock) { return k->locks + lock; }
static size_t visitor_of(const struct strike *k, size_t lock) { return 2 * k->locks + lock; }

/* The server that is struck: the only one, or the second of three. */
static size_t node_of(const struct strike *k) { return k->stage->coordinator.n_nodes / 2; }

/* ---- the faults; each returns false with k->err if it cannot be done ---- */

static bool pause_holders(struct strike *k)
{
    for (size_t i = 0; i < k->locks; i++)
        crowd_pause(&k->stage->crowd, holder_of(i));
    (void)locks_sleep_ms(k->stage, k->ttl_ms + k->ttl_ms / 2);
    for (size_t i = 0; i < k->locks; i++)
        crowd_resume(&k->stage->crowd, holder_of(i));
    return true;
}

static bool kill_holders(struct strike *k)
{
    for (size_t i = 0; i < k->locks; i++)
        crowd_kill(&k->stage->crowd, holder_of(i));
    return true;
}

static bool restart_server(struct strike *k, bool is_empty)
{
    struct coordinator *c = &k->stage->coordinator;
    coordinator_kill(c, node_of(k));
    bool good = coordinator_restart(c, node_of(k), is_empty, &k->err);
    k->outage_ms = (double)(crowd_now_us() - k->at_us) / 1000;
    return good;
}

static bool kill_server(struct strike *k) { return restart_server(k, false); }

static bool empty_server(struct strike *k)
{
    if (k->stage->coordinator.kind != COORDINATOR_SQLITE)
        return restart_server(k, true);
    coordinator_remove_file(&k->stage->coordinator);
    return true;
}

static bool lose_minority(struct strike *k)
{
    coordinator_kill(&k->stage->coordinator, node_of(k));
    return true;
}

static bool clock_forward(struct strike *k)
{
    return coordinator_step_clock(&k->stage->coordinator, node_of(k), HOUR_S, &k->err);
}

static bool clock_back(struct strike *k)
{
    return coordinator_step_clock(&k->stage->coordinator, node_of(k), -HOUR_S, &k->err);
}

static bool cut(struct strike *k, int64_t ms)
{
    coordinator_set_relays(&k->stage->coordinator, RELAY_SILENT);
    (void)locks_sleep_ms(k->stage, ms);
    coordinator_set_relays(&k->stage->coordinator, RELAY_PASS);
    return true;
}

static bool cut_short(struct strike *k) { return cut(k, k->ttl_ms / 2); }

static bool cut_long(struct strike *k) { return cut(k, 2 * k->ttl_ms); }

static const struct fault {
    const char *name, *title;
    bool (*strike)(struct strike *k);
    bool is_of_client;     /* nobody uses the lock from the moment at which it strikes */
    bool needs_server;     /* or, for `empty_server`, a file */
    bool needs_three;      /* servers */
    bool needs_steps;      /* of the servers' clocks */
    bool weakens;          /* the third of three servers is out of the holders' reach */
    enum hf_overlap cause; /* the declaration that allows overlaps; 0: none does */
} faults[LOCKS_FAULTS] = {
    [LOCKS_CLIENT_PAUSED] = {"client_paused", "client paused for 1.5 TTL", pause_holders,
                             .is_of_client = true},
    [LOCKS_CLIENT_KILLED] = {"client_killed", "client killed", kill_holders, .is_of_client = true},
    [LOCKS_SERVER_KILLED] = {"server_killed", "server killed, restarted", kill_server,
                             .needs_server = true},
    [LOCKS_SERVER_EMPTY] = {"server_empty", "server restarted empty", empty_server,
                            .needs_server = true, .weakens = true, .cause = HF_OVERLAP_RESTART},
    [LOCKS_MINORITY_LOST] = {"minority_lost", "minority of servers lost", lose_minority,
                             .needs_server = true, .needs_three = true},
    [LOCKS_CLOCK_FORWARD] = {"clock_forward", "server's clock + 1 h", clock_forward,
                             .needs_steps = true, .weakens = true, .cause = HF_OVERLAP_CLOCK},
    [LOCKS_CLOCK_BACK] = {"clock_back", "server's clock - 1 h", clock_back, .needs_steps = true,
                          .weakens = true, .cause = HF_OVERLAP_CLOCK},
    [LOCKS_CUT_SHORT] = {"cut_short", "connection cut for TTL / 2", cut_short,
                         .needs_server = true},
    [LOCKS_CUT_LONG] = {"cut_long", "connection cut for 2 TTL", cut_long, .needs_server = true},
};

const char *locks_fault_name(enum locks_fault_kind kind) { return faults[kind].name; }
const char *locks_fault_title(enum locks_fault_kind kind) { return faults[kind].title; }

/* Is the third server to be out of the holders' reach? */
static bool is_weakened(const struct strike *k, const struct fault *f)
{
    return f->weakens && k->stage->coordinator.n_nodes == 3;
}

/* ---- the clients ---- */

static void start_client(const struct strike *k, const struct fault *f, size_t lock,
                         enum lock_work work)
{
    const struct coordinator *c = &k->stage->coordinator;
    struct lock_task task = {.work = work, .ttl_ms = k->ttl_ms, .hold_ms = HOLD_MS};
    bool direct = c->n_nodes == 0 || (work != LOCK_KEEP && is_weakened(k, f));
    (void)snprintf(task.url, sizeof task.url, "%s", direct ? c->url : c->relayed_url);
    (void)snprintf(task.name, sizeof task.name, "%s-%zu", f->name, lock);
    (void)crowd_start(&k->stage->crowd, &task, 1);
}

/* Waits until the clients from `first` on are in a state. */
static bool await_clients(struct strike *k, size_t first, enum lock_client_state state)
{
    bool good = true;
    for (size_t i = first; good && i < k->stage->crowd.n; i++)
        good = crowd_await(&k->stage->crowd, i, state, START_MS_MAX, &k->err);
    return good;
}

static bool start_clients(struct strike *k, const struct fault *f)
{
    for (size_t i = 0; i < k->locks; i++)
        start_client(k, f, i, LOCK_KEEP);
    if (!await_clients(k, 0, LOCK_HOLDS))
        return false;
    for (size_t i = 0; i < k->locks; i++)
        start_client(k, f, i, LOCK_LOOP);
    for (size_t i = 0; i < k->locks; i++)
        start_client(k, f, i, LOCK_VISIT);
    return await_clients(k, k->locks, LOCK_ASKS) && locks_sleep_ms(k->stage, k->ttl_ms / 10);
}

/* Has another client than the holder had the lock since the fault struck? */
static bool is_passed_on(const struct strike *k, size_t lock)
{
    const struct lock_crowd *crowd = &k->stage->crowd;
    return crowd_grants_since(crowd, rival_of(k, lock), k->at_us) > 0 ||
           crowd_grants_since(crowd, visitor_of(k, lock), k->at_us) > 0;
}

static bool are_passed_on(const struct strike *k)
{
    size_t i = 0;
    while (i < k->locks && is_passed_on(k, i))
        i++;
    return i == k->locks;
}

static void await_others(const struct strike *k, int64_t limit_ms)
{
    for (int64_t ms = 0; ms < limit_ms && !are_passed_on(k); ms += LOOK_MS)
        if (!locks_sleep_ms(k->stage, LOOK_MS))
            return;
}

/* ---- what became of the locks ---- */

static bool is_kept(const struct strike *k, size_t lock)
{
    const struct board_page *page = &k->stage->crowd.board->pages[holder_of(lock)];
    const struct lock_grant *first = &page->grants[0];
    return k->stage->crowd.clients[holder_of(lock)].pid > 0 && page->n_grants == 1 &&
           !first->lost_us && !first->released_us && first->deadline_us > crowd_now_us();
}

static int64_t first_grant_since(const struct history *h, int64_t us, int64_t otherwise_us)
{
    for (size_t i = 0; i < h->grants.n; i++)
        if (h->grants.v[i].start_us >= us)
            return h->grants.v[i].start_us;
    return otherwise_us;
}

static void judge(const struct strike *k, const struct fault *f, int64_t end_us,
                  struct locks_fault *ret)
{
    struct history_times gaps = {0};
    for (size_t i = 0; i < k->locks; i++) {
        struct history h = {0};
        const size_t clients[] = {holder_of(i), rival_of(k, i), visitor_of(k, i)};
        for (size_t j = 0; j < sizeof clients / sizeof *clients; j++)
            crowd_history(&k->stage->crowd, clients[j], 1, &h);
        uint64_t overlaps = history_overlaps(&h);
        ret->overlaps += overlaps;
        ret->overlapped += overlaps > 0;
        ret->grants += h.grants.n;
        ret->fences_fell += history_fences_fell(&h);
        ret->stuck += !is_passed_on(k, i);
        *vec_push(&gaps.us) = f->is_of_client ? first_grant_since(&h, k->at_us, end_us) - k->at_us
                                              : history_gap_us(&h, k->at_us, end_us);
        history_close(&h);
    }
    ret->locks = (int)k->locks;
    ret->outage_ms = k->outage_ms;
    ret->gap_p50_ms = history_quantile(&gaps, 0.5) / 1000;
    ret->gap_max_ms = history_quantile(&gaps, 1) / 1000;
    history_times_close(&gaps);
}

/* ---- one fault ---- */

static bool play(struct strike *k, const struct fault *f, struct locks_fault *ret)
{
    struct lock_crowd *crowd = &k->stage->crowd;
    if (is_weakened(k, f))
        relay_set(k->stage->coordinator.nodes[2].relay, RELAY_CLOSED);
    if (!start_clients(k, f))
        return false;
    k->at_us = crowd_now_us();
    if (!f->strike(k))
        return false;
    await_others(k, SETTLE(k->ttl_ms));
    for (size_t i = 0; i < k->locks; i++)
        ret->kept += is_kept(k, i);
    for (size_t i = 0; i < k->locks; i++)
        crowd_release(crowd, holder_of(i));
    await_others(k, RECOVER(k->ttl_ms));
    int64_t end_us = crowd_now_us();
    crowd_stop(crowd, STOP_MS_MAX);
    judge(k, f, end_us, ret);
    return true;
}

/* Why a fault cannot strike this coordinator; "" if it can. */
static void find_obstacle(const struct locks_stage *s, enum locks_fault_kind kind,
                          char ret[LOCKS_WHY_SIZE])
{
    const struct fault *f = &faults[kind];
    const struct coordinator *c = &s->coordinator;
    char why[COORDINATOR_WHY_SIZE] = "";
    bool has_file = c->kind == COORDINATOR_SQLITE && kind == LOCKS_SERVER_EMPTY;
    if (!s->row->info->processes)
        locks_why(ret, "not applicable: holder and rival are threads of one process");
    else if (f->needs_server && c->n_nodes == 0 && !has_file)
        locks_why(ret, "not applicable: there is no server");
    else if (f->needs_three && c->n_nodes < 3)
        locks_why(ret, "not applicable: one server");
    else if (f->needs_steps && !coordinator_has_steps(c->kind, why))
        locks_why(ret, "not measurable here: %s", why);
}

/* A server whose clock can be stepped is another one, since it runs slower. */
static bool exchange_coordinator(struct locks_stage *s, bool has_steps, struct hf_err *err)
{
    if (s->coordinator.has_steps == has_steps)
        return true;
    enum coordinator_kind kind = s->coordinator.kind;
    coordinator_close(&s->coordinator);
    return locks_start_coordinator(s, kind, has_steps, err);
}

/* Makes good what the fault left. */
static bool repair(struct locks_stage *s, struct hf_err *err)
{
    struct coordinator *c = &s->coordinator;
    coordinator_set_relays(c, RELAY_PASS);
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i].pid == 0 && !coordinator_restart(c, i, false, err))
            return false;
        if (c->has_steps && !coordinator_step_clock(c, i, 0, err))
            return false;
    }
    return true;
}

static void measure(struct locks_stage *s, enum locks_fault_kind kind)
{
    const struct fault *f = &faults[kind];
    struct locks_fault *ret = &s->row->faults[kind];
    struct strike k = {
        .stage = s, .locks = (size_t)s->settings->locks, .ttl_ms = s->settings->ttl_ms};
    if (s->row->info->ttl_min_ms > k.ttl_ms)
        k.ttl_ms = s->row->info->ttl_min_ms;
    find_obstacle(s, kind, ret->why);
    if (ret->why[0] || locks_is_stopped(s))
        return;
    ret->is_declared = (s->row->info->overlaps & (uint64_t)f->cause) != 0;
    ret->ttl_ms = k.ttl_ms;
    locks_say(s, f->title);
    if (!exchange_coordinator(s, f->needs_steps, &k.err) || !play(&k, f, ret))
        locks_why(ret->why, "failed: %s", k.err.msg);
    crowd_clear(&s->crowd);
    struct hf_err err = {0};
    if (!repair(s, &err) && !ret->why[0])
        locks_why(ret->why, "failed: %s", err.msg);
}

void locks_measure_faults(struct locks_stage *s)
{
    /* Those that need another server come last. */
    for (int steps = 0; steps < 2; steps++)
        for (enum locks_fault_kind kind = 0; kind < LOCKS_FAULTS; kind++)
            if (faults[kind].needs_steps == (steps == 1))
                measure(s, kind);
}
