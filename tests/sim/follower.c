/* Announcements without a thread; see follower.h.  engine_open starts no follower: the test calls
 * follower_start itself. */
#include "sim/follower.h"

#include <stdlib.h>

#include "engine/engine_internal.h"
#include "engine/follow.h"

struct follower {
    VEC(struct event *) changed; /* pinned */
};

enum hf_status follower_start(struct engine *e, struct hf_err *err)
{
    (void)err;
    e->follower = hf_alloc(sizeof *e->follower);
    return HF_OK;
}

void follower_stop(struct engine *e) { (void)e; }

void follower_free(struct engine *e)
{
    if (!e->follower)
        return;
    vec_close(&e->follower->changed);
    free(e->follower);
    e->follower = NULL;
}

void follower_announce(struct engine *e, struct event *event)
{
    if (!atomic_exchange(&event->sync.announced, true))
        *vec_push(&e->follower->changed) = event_share(event);
}

void sim_follower_ask(struct engine *e, struct event *event)
{
    if (atomic_exchange(&event->sync.following, true))
        return;
    struct command *c = hf_alloc(sizeof *c);
    c->kind = CMD_FOLLOW;
    c->internal = true;
    c->event = c->pinned = event_share(event);
    hf_check(lane_pass(&engine_worker(e, event->def->id.key)->work, c));
}

void sim_follower_deliver(struct engine *from, struct engine *to)
{
    for (size_t i = 0; i < from->follower->changed.n; i++) {
        const struct event *changed = from->follower->changed.v[i];
        struct event *event = engine_event(to, changed->def->id.key);
        if (event && event->shown.seq < changed->shown.seq)
            sim_follower_ask(to, event);
    }
    sim_follower_lose(from);
}

void sim_follower_lose(struct engine *from)
{
    for (size_t i = 0; i < from->follower->changed.n; i++) {
        atomic_store(&from->follower->changed.v[i]->sync.announced, false);
        event_give(from->follower->changed.v[i]);
    }
    vec_clear(&from->follower->changed);
}
