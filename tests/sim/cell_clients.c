/* What the clients of a simulated cell do: their threads take locks, hold them, sometimes take a
 * second one meanwhile, and give them back; sessions are kept alive by the client core.  When the
 * faults are over nobody begins anything new, and one more client takes every lock once: it must
 * get each of them in the time that is promised. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cell_clients.h"

#define PROBE (CELL_CLIENTS_MAX - 1)

/* The names of a run.  Those that begin with "try" are only tried, and their histories kept. */
static const char *const names[] = {"try0",    "try0/a", "try0/b", "try1",   "queue",
                                    "queue/x", "pair1",  "pair2",  "shared", "slots"};
#define N_NAMES (int)(sizeof names / sizeof names[0])

const char *cell_sim_name(const char *name)
{
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return "";
}

static void task_turn(struct task *t);

static void task_wakes(struct cell_world *w, struct sim_event *e)
{
    struct task *t = e->on;
    struct sim_client *c = t->client;
    if (t->turn != e->number || !c->core)
        return;
    if (c->paused_until_us > w->now_us)
        sim_at(w, c->paused_until_us + sim_between(w, 0, 500), task_wakes, t, t->turn);
    else
        task_turn(t);
}

static void task_at(struct task *t, int64_t at_us)
{
    sim_at(t->client->world, at_us, task_wakes, t, ++t->turn);
}

static void task_after(struct task *t, int64_t from_us, int64_t to_us)
{
    task_at(t, t->client->world->now_us + sim_between(t->client->world, from_us, to_us));
}

static bool is_over(const struct cell_world *w) { return w->now_us >= w->weather.end_us; }

/* ---- beginning ---- */

static struct task_lock *add_lock(struct task *t, const char *name, enum hf_mode mode, bool queue)
{
    struct task_lock *l = &t->locks[t->n_locks++];
    *l = (struct task_lock){.name = name, .mode = mode, .slots = 1, .queue = queue};
    random_bytes(&t->client->random, l->owner, sizeof l->owner);
    return l;
}

static void begin(struct task *t)
{
    struct sim_client *c = t->client;
    struct cell_world *w = c->world;
    const struct cell_weather *weather = &w->weather;
    t->n_locks = t->at = 0;
    if (sim_chance(w, weather->looks)) {
        wire_look(c, names[sim_between(w, 0, 3)]);
        task_after(t, 20000, 300000);
        return;
    }
    if (sim_chance(w, weather->pairs)) {
        int first = (int)sim_between(w, 6, 7);
        add_lock(t, names[first], HF_EXCLUSIVE, true);
        add_lock(t, names[13 - first], HF_EXCLUSIVE, true);
    } else if (sim_chance(w, weather->shared)) {
        const bool reads = sim_chance(w, 750);
        add_lock(t, "shared", reads ? HF_SHARED : HF_EXCLUSIVE, sim_chance(w, weather->waits));
    } else if (sim_chance(w, weather->waits)) {
        const char *name = names[weather->crowded ? 4 : (int[]){4, 5, 9}[sim_between(w, 0, 2)]];
        bool reads = strcmp(name, "queue") == 0 && sim_chance(w, 300);
        struct task_lock *l = add_lock(t, name, reads ? HF_SHARED : HF_EXCLUSIVE, true);
        l->slots = strcmp(name, "slots") == 0 ? 2 : 1;
    } else {
        add_lock(t, names[weather->crowded ? 0 : sim_between(w, 0, 3)],
                 sim_chance(w, 250) ? HF_SHARED : HF_EXCLUSIVE, false);
    }
    t->step = TASK_ASKS;
    t->give_up_us = w->now_us + sim_between(w, 100000, 3000000);
    task_turn(t);
}

/* ---- asking ---- */

static struct client_lease *lease_of(const struct task *t, int lock)
{
    const struct task_lock *l = &t->locks[lock];
    return client_find(t->client->core, l->name, strlen(l->name), l->owner);
}

static void granted(struct task *t, struct client_lease *lease)
{
    struct sim_client *c = t->client;
    struct cell_world *w = c->world;
    struct task_lock *l = &t->locks[t->at];
    struct id id;
    const char *session = client_session(c->core);
    hf_check(id_parse(session, strlen(session), "ses_", &id));
    l->is_held = true;
    l->session = id.key;
    const struct belief belief = {.client = c->no,
                                  .session = id.key,
                                  .name = l->name,
                                  .mode = l->mode == HF_SHARED ? CELL_SHARED : CELL_EXCLUSIVE,
                                  .slots = l->slots,
                                  .fence = client_lease_fence(lease)};
    sim_trace(w, c->who, "task %d holds %s, fence %" PRId64, t->no, l->name, belief.fence);
    if (!c->caches || l->mode != HF_SHARED) /* a cached grant is older than the question */
        check_granted(w, &belief, l->asked_us);
    t->step = TASK_HOLDS;
    t->hold_until_us =
        w->now_us + (c->no == PROBE ? 1000 : 1000 * sim_between(w, 5, w->weather.hold_ms));
    task_after(t, 1000, 10000);
}

static void give_up(struct task *t)
{
    t->step = TASK_RELEASES;
    task_turn(t);
}

static void ask(struct task *t)
{
    struct sim_client *c = t->client;
    struct cell_world *w = c->world;
    struct task_lock *l = &t->locks[t->at];
    struct client_lease *lease = NULL;
    struct client_message m;
    const struct lease_request want = {.key = l->name,
                                       .key_len = strlen(l->name),
                                       .ttl_ms = w->weather.ttl_ms,
                                       .mode = l->mode,
                                       .priority = l->queue ? (int)sim_between(w, 0, 1) : 0,
                                       .slots = l->slots,
                                       .queue = l->queue,
                                       .agent = (uint64_t)t->no + 1};
    struct lease_request request = want;
    memcpy(request.owner, l->owner, sizeof request.owner);
    if (c->no != PROBE && (w->now_us > t->give_up_us || is_over(w))) {
        give_up(t);
        return;
    }
    if (!l->asked_us)
        l->asked_us = w->now_us;
    switch (client_acquire(c->core, &request, client_now_us(c), &lease, &m)) {
    case CLIENT_SEND:
        if (lease)
            client_lease_set_waiter(lease, t);
        t->turn++; /* task_told goes on */
        wire_send(c, &m, t);
        break;
    case CLIENT_KNOWN:
        if (lease && client_lease_is_held(lease, client_now_us(c)))
            granted(t, lease);
        else
            task_after(t, 1000, 50000);
        break;
    case CLIENT_BUSY:
        task_after(t, 1000, 20000);
        break;
    }
    client_pump(c);
}

/* ---- holding ---- */

static void hold(struct task *t)
{
    struct sim_client *c = t->client;
    struct cell_world *w = c->world;
    int64_t now_us = client_now_us(c);
    for (int i = 0; i <= t->at; i++) {
        struct client_lease *lease = lease_of(t, i);
        if (!lease || !client_renew(c->core, lease, now_us)) {
            give_up(t);
            return;
        }
    }
    if (t->at + 1 < t->n_locks && !is_over(w)) {
        t->at++;
        t->step = TASK_ASKS;
        task_turn(t);
    } else if (w->now_us >= t->hold_until_us || is_over(w)) {
        give_up(t);
    } else {
        int64_t step_us = w->weather.ttl_ms * 1000 / 5;
        int64_t next_us = w->now_us + step_us;
        task_at(t, next_us < t->hold_until_us ? next_us : t->hold_until_us);
    }
    client_pump(c);
}

/* ---- giving back ---- */

static void end_task(struct task *t)
{
    struct cell_world *w = t->client->world;
    t->step = t->client->no == PROBE || is_over(w) ? TASK_OVER : TASK_IDLE;
    if (t->step == TASK_IDLE)
        task_after(t, 10000, 250000);
}

/* The last lock first.  A lock whose grant has not been heard of is given up as well. */
static void release(struct task *t)
{
    struct sim_client *c = t->client;
    struct client_message m;
    enum client_result result;
    while (t->at >= 0) {
        struct client_lease *lease = lease_of(t, t->at);
        t->locks[t->at].is_held = false;
        t->at--;
        if (lease && client_release(c->core, lease, client_now_us(c), &m, &result) == CLIENT_SEND) {
            t->turn++;
            wire_send(c, &m, t);
            client_pump(c);
            return;
        }
    }
    end_task(t);
    client_pump(c);
}

/* ---- turns ---- */

static void task_turn(struct task *t)
{
    switch (t->step) {
    case TASK_IDLE:
        if (is_over(t->client->world))
            t->step = TASK_OVER;
        else
            begin(t);
        break;
    case TASK_ASKS:
    case TASK_WAITS:
        ask(t);
        break;
    case TASK_HOLDS:
        hold(t);
        break;
    case TASK_RELEASES:
        release(t);
        break;
    case TASK_OVER:
        break;
    }
}

/* What became of the message that the task waited for. */
void task_told(struct task *t, enum client_result result)
{
    struct cell_world *w = t->client->world;
    if (t->step == TASK_RELEASES) {
        task_after(t, 1, 100);
        return;
    }
    t->step = TASK_ASKS;
    switch (result) {
    case CLIENT_DONE:
    case CLIENT_AGAIN:
        task_after(t, 1, 100);
        break;
    case CLIENT_TAKEN:
        if (t->locks[t->at].queue) {
            t->step = TASK_WAITS;
            task_after(t, 10000, 400000);
        } else {
            give_up(t);
        }
        break;
    case CLIENT_NOT_DONE:
        task_after(t, 5000, 100000);
        break;
    case CLIENT_NO_ANSWER:
        if (sim_chance(w, 700) || t->client->no == PROBE)
            task_after(t, 1000, 100000);
        else
            give_up(t);
        break;
    default:
        if (t->client->no == PROBE && result != CLIENT_REFUSED)
            task_after(t, 1000, 100000);
        else
            give_up(t);
    }
}

/* A waiter's turn has come, or a lease is lost. */
static void on_change(void *context, struct client_lease *lease)
{
    struct sim_client *c = context;
    struct task *t = client_lease_waiter(lease);
    if (t && c->core && (t->step == TASK_WAITS || t->step == TASK_HOLDS))
        task_after(t, 1, 1000);
}

/* ---- sessions ---- */

static void client_due(struct cell_world *w, struct sim_event *e)
{
    struct sim_client *c = e->on;
    if (e->number != c->due_no || !c->core)
        return;
    if (c->paused_until_us > w->now_us) {
        sim_at(w, c->paused_until_us + sim_between(w, 0, 500), client_due, c, c->due_no);
        return;
    }
    c->due_us = 0;
    client_pump(c);
}

void client_pump(struct sim_client *c)
{
    struct cell_world *w = c->world;
    struct client_message m;
    while (client_next(c->core, client_now_us(c), &m))
        wire_send(c, &m, NULL);
    wire_stream(c);
    int64_t at_us = sim_clock_true_us(&c->clock, client_due_us(c->core));
    if (at_us > w->now_us + 100000 && client_wants_stream(c->core) && c->stream.server < 0)
        at_us = w->now_us + 100000; /* it tries to connect */
    if (at_us >= INT64_MAX / 2 || (c->due_us && c->due_us <= at_us))
        return;
    c->due_us = at_us;
    sim_at(w, at_us, client_due, c, ++c->due_no);
}

/* ---- lives ---- */

static void client_start(struct sim_client *c)
{
    struct cell_world *w = c->world;
    const struct client_config config = {.ttl_ms = w->weather.ttl_ms,
                                         .label = c->who,
                                         .cache = c->caches,
                                         .random = &c->random,
                                         .on_change = on_change,
                                         .context = c};
    c->life++;
    c->due_us = 0;
    c->due_no++;
    c->stream.server = -1;
    c->core = client_new(&config);
    for (int i = 0; i < c->n_tasks; i++) {
        struct task *t = &c->tasks[i];
        t->client = c;
        t->no = i;
        t->step = TASK_IDLE;
        task_after(t, 0, 200000);
    }
}

static void client_restarts(struct cell_world *w, struct sim_event *e)
{
    struct sim_client *c = e->on;
    if (!c->core && !is_over(w))
        client_start(c);
}

void client_crash(struct cell_world *w, int client)
{
    struct sim_client *c = w->clients[client];
    if (!c || !c->core)
        return;
    sim_trace(w, c->who, "crashes");
    struct client *core = c->core;
    c->core = NULL;
    c->life++;
    client_free(core);
    for (int i = 0; i < c->n_tasks; i++) {
        c->tasks[i].turn++;
        c->tasks[i].step = TASK_OVER;
        c->tasks[i].n_locks = 0;
    }
    sim_at(w, w->now_us + sim_between(w, 1000, 1000000), client_restarts, c, 0);
}

void client_pause(struct cell_world *w, int client, int64_t until_us)
{
    struct sim_client *c = w->clients[client];
    sim_trace(w, c->who, "is paused until %.3f ms", (double)until_us / 1000);
    if (c && until_us > c->paused_until_us)
        c->paused_until_us = until_us;
}

int64_t client_paused_until_us(const struct cell_world *w, int client)
{
    return w->clients[client] ? w->clients[client]->paused_until_us : 0;
}

size_t clients_beliefs(const struct cell_world *w, struct belief *ret, size_t max)
{
    size_t n = 0;
    for (int i = 0; i < CELL_CLIENTS_MAX; i++) {
        struct sim_client *c = w->clients[i];
        for (int k = 0; c && c->core && k < c->n_tasks; k++)
            for (int j = 0; j < c->tasks[k].n_locks; j++) {
                const struct task_lock *l = &c->tasks[k].locks[j];
                const struct client_lease *lease = l->is_held ? lease_of(&c->tasks[k], j) : NULL;
                if (lease && n < max && client_lease_is_held(lease, client_now_us(c)))
                    ret[n++] =
                        (struct belief){.client = i,
                                        .session = l->session,
                                        .name = l->name,
                                        .mode = l->mode == HF_SHARED ? CELL_SHARED : CELL_EXCLUSIVE,
                                        .slots = l->slots,
                                        .fence = client_lease_fence(lease)};
            }
    }
    return n;
}

void clients_hold_on(struct cell_world *w, int client, int64_t until_us)
{
    struct sim_client *c = w->clients[client];
    for (int i = 0; c && i < c->n_tasks; i++)
        if (c->tasks[i].step == TASK_HOLDS && c->tasks[i].hold_until_us < until_us)
            c->tasks[i].hold_until_us = until_us;
}

/* ---- the end of the faults ---- */

static void ends(struct cell_world *w, struct sim_event *e)
{
    const struct task *waits = NULL;
    for (int i = 0; i < CELL_CLIENTS_MAX; i++)
        for (int k = 0; w->clients[i] && k < w->clients[i]->n_tasks; k++)
            if (w->clients[i]->tasks[k].step != TASK_OVER)
                waits = &w->clients[i]->tasks[k];
    if (waits && w->now_us < w->weather.end_us + w->weather.patience_us) {
        sim_at(w, w->now_us + 20000, ends, NULL, 0);
        return;
    }
    (void)e;
    w->done = true;
    if (waits)
        sim_fail(w, "progress: task %d of c%d still %s %s, %.3f s after the last fault", waits->no,
                 waits->client->no,
                 (const char *[]){"idles", "asks for", "awaits", "holds", "releases",
                                  "ended"}[waits->step],
                 waits->n_locks ? waits->locks[waits->at < 0 ? 0 : waits->at].name : "",
                 (double)w->weather.patience_us / 1e6);
}

static struct sim_client *client_add(struct cell_world *w, int no)
{
    struct sim_client *c = hf_alloc(sizeof *c);
    w->clients[no] = c;
    c->world = w;
    c->no = no;
    (void)snprintf(c->who, sizeof c->who, "c%d", no);
    sim_clock_init(w, &c->clock);
    random_init_seeded(&c->random, random_u64(&w->random));
    c->server = (int)sim_between(w, 0, w->weather.servers - 1);
    return c;
}

static void probe(struct cell_world *w, struct sim_event *e)
{
    struct sim_client *c = client_add(w, PROBE);
    (void)e;
    c->n_tasks = N_NAMES;
    client_start(c);
    for (int i = 0; i < N_NAMES; i++) {
        struct task *t = &c->tasks[i];
        struct task_lock *l = add_lock(t, names[i], HF_EXCLUSIVE, true);
        l->slots = strcmp(names[i], "slots") == 0 ? 2 : 1;
        t->step = TASK_ASKS;
    }
    sim_at(w, w->now_us + 20000, ends, NULL, 0);
}

void clients_open(struct cell_world *w)
{
    for (int i = 0; i < w->weather.clients; i++) {
        struct sim_client *c = client_add(w, i);
        c->caches = sim_chance(w, w->weather.cached);
        c->n_tasks = (int)sim_between(w, 1, 2);
        client_start(c);
    }
    sim_at(w, w->weather.end_us, probe, NULL, 0);
}

void clients_end_histories(struct cell_world *w)
{
    for (int i = 0; i < CELL_CLIENTS_MAX; i++)
        if (w->clients[i])
            wire_end_histories(w->clients[i]);
}

void clients_close(struct cell_world *w)
{
    wire_close(w);
    for (int i = 0; i < CELL_CLIENTS_MAX; i++) {
        struct sim_client *c = w->clients[i];
        if (!c)
            continue;
        struct client *core = c->core;
        c->core = NULL; /* what is lost now is of no interest */
        client_free(core);
        vec_close(&c->sessions);
        vec_close(&c->claims);
        free(c);
    }
}
