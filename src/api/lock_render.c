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

static void put_text(struct buf *out, const char *text, size_t len)
{
    if (text)
        buf_json(out, text, len);
    else
        buf_lit(out, "null");
}

static void put_label(struct buf *out, const struct cell_acquisition *a)
{
    const char *label = cell_acquisition_label(a);
    buf_lit(out, "\"label\":");
    put_text(out, *label ? label : NULL, strlen(label));
}

static void put_mode_and_owner(struct buf *out, const struct cell_acquisition *a)
{
    char owner[CELL_OWNER_TEXT_SIZE];
    cell_owner_format(&a->owner, owner);
    buf_lit(out, ",\"mode\":\"");
    buf_str(out, cell_mode_names[a->mode]);
    buf_lit(out, "\",\"owner\":\"");
    buf_str(out, owner);
    buf_char(out, '"');
}

/* How long ago; null if this server was not there. */
static void put_age(struct lock_look *l, const char *name, int64_t since_us)
{
    buf_str(l->out, name);
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
    buf_lit(l->out, ",\"remaining_ms\":");
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
    buf_char(out, '{');
    put_label(out, a);
    put_mode_and_owner(out, a);
    buf_lit(out, ",\"fence\":");
    buf_int(out, a->fence);
    buf_lit(out, ",\"slot\":");
    buf_int(out, a->slot);
    buf_str(out, a->cached ? ",\"cached\":true" : ",\"cached\":false");
    buf_str(out, a->stage == CELL_DELAYED ? ",\"delayed\":true" : ",\"delayed\":false");
    put_age(l, ",\"held_ms\":", a->local.since_us);
    put_remaining(l, a->session);
    buf_char(out, '}');
}

/* Returns how many holders there are, at most LOCK_WORK_MAX. */
static size_t put_holders(struct lock_look *l, const struct cell_name *n)
{
    size_t count = 0;
    buf_lit(l->out, ",\"holders\":[");
    for (const struct cell_acquisition *a = n ? cell_name_holders(n) : NULL;
         a && count < LOCK_WORK_MAX; a = a->next, count++) {
        if (count >= l->people_max)
            continue;
        buf_str(l->out, count ? "," : "");
        put_holder(l, a);
    }
    buf_char(l->out, ']');
    l->work += count;
    return count;
}

/* What the waiter waits for: the first conflicting holders and earlier waiters. */
static void put_blockers(struct lock_look *l, const struct cell_acquisition *a)
{
    cell_acquisitions blockers = {0};
    buf_lit(l->out, ",\"waits_for\":[");
    if (l->work < LOCK_WORK_MAX)
        cell_acquisition_blockers(l->state, a, &blockers);
    l->work += blockers.n;
    for (size_t i = 0; i < blockers.n && i < LOCK_BLOCKERS_MAX; i++) {
        const struct cell_acquisition *b = blockers.v[i];
        size_t len;
        const char *name = cell_name_text(b->name, &len);
        buf_str(l->out, i ? ",{\"name\":" : "{\"name\":");
        put_text(l->out, name, len);
        buf_char(l->out, ',');
        put_label(l->out, b);
        buf_lit(l->out, ",\"mode\":\"");
        buf_str(l->out, cell_mode_names[b->mode]);
        buf_lit(l->out, "\"}");
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
    buf_lit(l->out, ",\"waiters\":[");
    for (size_t i = 0; i < waiters.n && i < l->people_max; i++) {
        const struct cell_acquisition *a = waiters.v[i];
        buf_str(l->out, i ? ",{" : "{");
        put_label(l->out, a);
        put_mode_and_owner(l->out, a);
        buf_lit(l->out, ",\"priority\":");
        buf_int(l->out, a->priority);
        put_age(l, ",\"waited_ms\":", a->local.since_us);
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
    int64_t last_fence = n ? cell_name_last_fence(n) : 0;
    buf_lit(out, "{\"object\":\"lock\",\"name\":");
    put_text(out, name, len);
    size_t n_holders = put_holders(l, n);
    put_waiters(l, n);
    buf_printf(out, ",\"n_holders\":%zu,\"n_waiters\":%zu,\"last_fence\":", n_holders,
               n ? cell_name_n_waiters(n) : 0);
    if (last_fence)
        buf_int(out, last_fence);
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"value\":");
    put_text(out, value, value_len);
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
        buf_str(out, page->n++ ? "," : "");
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
    buf_lit(out, "{\"url\":");
    put_text(out, url, strlen(url));
    buf_printf(out, ",\"index\":%lld,\"role\":\"%s\",\"lag\":%lld}", (long long)index,
               strcmp(url, status->master_url) == 0 ? "master" : "standby", (long long)lag);
}

/* The servers that reported lately, and this one, which knows better how far it is. */
static void put_servers(const struct node_status *status, const char *url, struct buf *out)
{
    buf_lit(out, ",\"servers\":[");
    put_server(status, url, status->index, out);
    for (size_t i = 0; i < status->n_servers; i++) {
        const struct journal_server *server = &status->servers[i];
        if (strcmp(server->url, url) == 0)
            continue;
        buf_char(out, ',');
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
    buf_lit(out, "{\"object\":\"cell\",\"master\":");
    if (*status.master_url) {
        buf_lit(out, "{\"url\":");
        put_text(out, status.master_url, strlen(status.master_url));
        buf_char(out, '}');
    } else {
        buf_lit(out, "null");
    }
    buf_printf(out, ",\"epoch\":%lld,\"index\":%lld", (long long)status.epoch,
               (long long)status.index);
    put_servers(&status, url, out);
    buf_lit(out, ",\"appended_ms\":");
    if (status.appended_ms >= 0)
        buf_int(out, status.appended_ms);
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"url\":");
    put_text(out, url, strlen(url));
    buf_printf(
        out,
        ",\"role\":\"%s\",\"journal\":\"%s\",\"journal_answers\":%s,\"sessions\":%zu,\"names\":%zu,"
        "\"held\":%zu,\"waiting\":%zu}",
        node_role_names[status.role], api->journal, status.journal_answers ? "true" : "false",
        cell_state_n_sessions(s), cell_state_n_names(s), cell_state_n_held(s),
        cell_state_n_waiting(s));
}
