/* See lock_render.h.  On the cell's thread. */
#include "api/lock_render.h"

#include <string.h>

#include "api/api.h"

struct lock_look {
    const struct cell_state *state;
    const struct clock *clock;
    struct buf *out;
    size_t people_max; /* of each list */
    size_t work;       /* holders and waiters that were looked at so far */
};

/* Begins the object of a holder or waiter. */
static void open_person(struct buf *out, const struct cell_acquisition *a)
{
    char owner[CELL_OWNER_TEXT_SIZE];
    cell_owner_format(&a->owner, owner);
    json_open(out, NULL, '{');
    json_put_text_or_null(out, "label", cell_acquisition_label(a));
    json_put_text(out, "mode", cell_mode_names[a->mode]);
    json_put_text(out, "owner", owner);
}

/* How long ago; null if this server was not there. */
static void put_age(struct lock_look *l, const char *name, int64_t since_us)
{
    json_put_name(l->out, name);
    if (since_us > 0) {
        int64_t us = clock_boot_us(l->clock) - since_us;
        buf_int(l->out, us > 0 ? us / 1000 : 0);
    } else {
        buf_lit(l->out, "null");
    }
}

/* What is left of the session by the master's clock; null on a standby, and of a delayed holder.
 * While a keep-alive is being stored the session does not expire. */
static void put_remaining(struct lock_look *l, const struct cell_session *s)
{
    json_put_name(l->out, "remaining_ms");
    if (!s || s->local.deadline_us == 0) {
        buf_lit(l->out, "null");
        return;
    }
    int64_t ttl_ms = s->ttl_ms, left_ms = (s->local.deadline_us - clock_boot_us(l->clock)) / 1000;
    buf_int(l->out, left_ms < 0 ? 0 : left_ms < ttl_ms ? left_ms : ttl_ms);
}

static void put_holder(struct lock_look *l, const struct cell_acquisition *a)
{
    struct buf *out = l->out;
    open_person(out, a);
    json_put_int(out, "fence", a->fence);
    json_put_int(out, "slot", a->slot);
    json_put_bool(out, "cached", a->cached);
    json_put_bool(out, "delayed", a->stage == CELL_DELAYED);
    put_age(l, "held_ms", a->local.since_us);
    put_remaining(l, a->session);
    buf_char(out, '}');
}

/* Returns how many holders there are, at most LOCK_WORK_MAX. */
static size_t put_holders(struct lock_look *l, const struct cell_name *n)
{
    size_t count = 0;
    json_open(l->out, "holders", '[');
    for (const struct cell_acquisition *a = n ? cell_name_holders(n) : NULL;
         a && count < LOCK_WORK_MAX; a = a->next, count++)
        if (count < l->people_max)
            put_holder(l, a);
    buf_char(l->out, ']');
    l->work += count;
    return count;
}

/* What the waiter waits for: the first conflicting holders and earlier waiters. */
static void put_blockers(struct lock_look *l, const struct cell_acquisition *a)
{
    cell_acquisitions blockers = {0};
    json_open(l->out, "waits_for", '[');
    if (l->work < LOCK_WORK_MAX)
        cell_acquisition_blockers(l->state, a, &blockers);
    l->work += blockers.n;
    for (size_t i = 0; i < blockers.n && i < LOCK_BLOCKERS_MAX; i++) {
        const struct cell_acquisition *b = blockers.v[i];
        size_t len;
        const char *name = cell_name_text(b->name, &len);
        json_open(l->out, NULL, '{');
        json_put_bytes(l->out, "name", name, len);
        json_put_text_or_null(l->out, "label", cell_acquisition_label(b));
        json_put_text(l->out, "mode", cell_mode_names[b->mode]);
        buf_char(l->out, '}');
    }
    buf_char(l->out, ']');
    vec_close(&blockers);
}

static void put_waiters(struct lock_look *l, const struct cell_name *n)
{
    cell_acquisitions waiters = {0};
    if (n)
        cell_name_waiters(n, &waiters);
    l->work += waiters.n;
    json_open(l->out, "waiters", '[');
    for (size_t i = 0; i < waiters.n && i < l->people_max; i++) {
        const struct cell_acquisition *a = waiters.v[i];
        open_person(l->out, a);
        json_put_int(l->out, "priority", a->priority);
        put_age(l, "waited_ms", a->local.since_us);
        put_blockers(l, a);
        buf_char(l->out, '}');
    }
    buf_char(l->out, ']');
    vec_close(&waiters);
}

static void put_name(struct lock_look *l, const struct cell_name *n, const char *name, size_t len)
{
    struct buf *out = l->out;
    size_t value_len = 0;
    const char *value = n ? cell_name_value(n, &value_len) : NULL;
    json_open(out, NULL, '{');
    json_put_text(out, "object", "lock");
    json_put_bytes(out, "name", name, len);
    size_t n_holders = put_holders(l, n);
    put_waiters(l, n);
    json_put_int(out, "n_holders", (int64_t)n_holders);
    json_put_int(out, "n_waiters", n ? (int64_t)cell_name_n_waiters(n) : 0);
    json_put_int_or_null(out, "last_fence", n ? cell_name_last_fence(n) : 0);
    json_put_bytes(out, "value", value, value_len);
    buf_char(out, '}');
}

void lock_render_name(const struct cell_state *s, const char *name, size_t len,
                      const struct clock *clock, struct buf *out)
{
    struct lock_look l = {.state = s, .clock = clock, .out = out, .people_max = LOCK_PEOPLE_MAX};
    put_name(&l, cell_name_find(s, name, len), name, len);
}

void lock_render_page(const struct cell_state *s, struct lock_page *page, const struct clock *clock,
                      struct buf *out)
{
    struct lock_look l = {.state = s, .clock = clock, .out = out, .people_max = LOCK_PAGE_PEOPLE};
    const char *last = page->after;
    size_t last_len = strlen(last), prefix_len = strlen(page->prefix);
    for (size_t looked_at = 0;; looked_at++) {
        const struct cell_name *n = cell_name_next(s, last, last_len, page->prefix, prefix_len);
        if (!n)
            return;
        if (page->n == page->limit || looked_at == LOCK_PAGE_NAMES || l.work >= LOCK_WORK_MAX)
            break;
        last = cell_name_text(n, &last_len);
        if (page->waiting && cell_name_n_waiters(n) == 0)
            continue;
        page->n++;
        put_name(&l, n, last, last_len);
    }
    page->more = true;
    memcpy(page->cursor, last, last_len);
    page->cursor[last_len] = '\0';
}

/* ---- the cell ---- */

static void put_server(const struct node_status *status, const char *url, int64_t index,
                       struct buf *out)
{
    int64_t lag = status->last > index ? status->last - index : 0;
    json_open(out, NULL, '{');
    json_put_text(out, "url", url);
    json_put_int(out, "index", index);
    json_put_text(out, "role", strcmp(url, status->master_url) == 0 ? "master" : "standby");
    json_put_int(out, "lag", lag);
    buf_char(out, '}');
}

/* The servers that reported lately, and this one, which knows better how far it is. */
static void put_servers(const struct node_status *status, const char *url, struct buf *out)
{
    json_open(out, "servers", '[');
    put_server(status, url, status->index, out);
    for (size_t i = 0; i < status->n_servers; i++) {
        const struct journal_server *server = &status->servers[i];
        if (strcmp(server->url, url) != 0)
            put_server(status, server->url, server->index, out);
    }
    buf_char(out, ']');
}

void lock_render_cell(const struct node *n, const struct cell_state *s, const struct api *api,
                      struct buf *out)
{
    const char *url = api->cell_url;
    struct node_status status = {0};
    node_status(n, &status);
    buf_lit(out, "{\"object\":\"cell\"");
    if (*status.master_url) {
        json_open(out, "master", '{');
        json_put_text(out, "url", status.master_url);
        buf_char(out, '}');
    } else {
        json_put_text(out, "master", NULL);
    }
    json_put_int(out, "epoch", status.epoch);
    json_put_int(out, "index", status.index);
    put_servers(&status, url, out);
    json_put_name(out, "appended_ms");
    if (status.appended_ms >= 0)
        buf_int(out, status.appended_ms);
    else
        buf_lit(out, "null");
    json_put_text(out, "url", url);
    json_put_text(out, "role", node_role_names[status.role]);
    json_put_text(out, "journal", api->journal);
    json_put_bool(out, "journal_answers", status.journal_answers);
    json_put_int(out, "sessions", (int64_t)cell_state_n_sessions(s));
    json_put_int(out, "names", (int64_t)cell_state_n_names(s));
    json_put_int(out, "held", (int64_t)cell_state_n_held(s));
    json_put_int(out, "waiting", (int64_t)cell_state_n_waiting(s));
    buf_char(out, '}');
}
