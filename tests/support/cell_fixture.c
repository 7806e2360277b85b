/* See cell_fixture.h. */
#include "support/cell_fixture.h"

#include <stdio.h>
#include <string.h>

static const char *const effect_names[] = {
    [CELL_EFFECT_OPENED] = "opened",       [CELL_EFFECT_CLOSED] = "closed",
    [CELL_EFFECT_QUEUED] = "queued",       [CELL_EFFECT_GRANTED] = "granted",
    [CELL_EFFECT_RELEASED] = "released",   [CELL_EFFECT_LOST] = "lost",
    [CELL_EFFECT_CANCELLED] = "cancelled", [CELL_EFFECT_DELAYED] = "delayed",
    [CELL_EFFECT_UNDELAYED] = "undelayed", [CELL_EFFECT_VALUE] = "value",
    [CELL_EFFECT_WANTED] = "wanted",
};

void cell_fixture_open(struct cell_fixture *d)
{
    *d = (struct cell_fixture){.state = cell_state_new()};
    buf_char(&d->effects, '\0');
}

void cell_fixture_close(struct cell_fixture *d)
{
    cell_state_free(d->state);
    cell_verdict_close(&d->verdict);
    buf_close(&d->effects);
}

static void tell_effects(struct cell_fixture *d)
{
    size_t n;
    const struct cell_effect *effects = cell_state_effects(d->state, &n);
    d->effects.len = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cell_effect *e = &effects[i];
        size_t len = 0;
        const char *name = e->name ? cell_name_text(e->name, &len) : "";
        buf_printf(&d->effects, "%s%s%s", i ? ", " : "", effect_names[e->kind],
                   e->withdrawn ? "*" : "");
        if (e->name)
            buf_printf(&d->effects, " %.*s", (int)len, name);
        if (e->session)
            buf_printf(&d->effects, " %s", e->session->label);
    }
    buf_char(&d->effects, '\0');
}

/* Through the bytes of an entry, as in a cell. */
static void apply(struct cell_fixture *d, const struct cell_command *c)
{
    struct entry_head head = {.epoch = 1};
    struct entry_reader r;
    struct cell_command read;
    struct hf_err err = {0};
    struct buf bytes = {0};
    entry_put_head(&bytes, &head);
    entry_put(&bytes, c);
    hf_check(entry_open(&r, bytes.data, bytes.len, &head, &err));
    hf_check(entry_next(&r, &read, &err));
    cell_state_apply(d->state, &read, &d->verdict);
    hf_check(!entry_next(&r, &read, &err) && err.code == HF_OK);
    entry_close(&r);
    buf_close(&bytes);
}

static void go_on_with_a_restored_state(struct cell_fixture *d)
{
    struct buf first = {0}, second = {0};
    struct hf_err err = {0};
    cell_state_check(d->state);
    cell_state_save(d->state, &first);
    struct cell_state *restored = cell_state_restore(first.data, first.len, &err);
    if (!restored)
        hf_check_failed(err.msg, __FILE__, __LINE__);
    cell_state_save(restored, &second);
    hf_check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    cell_state_free(d->state);
    d->state = restored;
    buf_close(&first);
    buf_close(&second);
}

const struct cell_verdict *cell_fixture_apply(struct cell_fixture *d, const struct cell_command *c)
{
    apply(d, c);
    tell_effects(d);
    if (d->on_applied)
        d->on_applied(d, d->context);
    cell_state_clear_effects(d->state);
    if (!d->keeps_state)
        go_on_with_a_restored_state(d);
    return &d->verdict;
}

static struct cell_text text_of(const char *text)
{
    return (struct cell_text){.data = text, .len = text ? strlen(text) : 0};
}

struct cell_command cell_fixture_command(enum cell_kind kind, const struct cell_ask *ask)
{
    static _Thread_local char label[32];
    const char *owner = ask->owner ? ask->owner : "1";
    struct cell_command c = {.kind = kind,
                             .session = {.key = ask->session},
                             .name = text_of(ask->name),
                             .agent = text_of(ask->agent),
                             .value = text_of(ask->value),
                             .label = text_of(ask->label),
                             .mode = ask->mode,
                             .slots = ask->slots ? ask->slots : 1,
                             .delay_ms = ask->delay_ms,
                             .priority = ask->priority,
                             .queue = !ask->no_queue,
                             .finds_knots = !ask->no_queue && !ask->is_old,
                             .cached = ask->cached,
                             .fence = ask->fence,
                             .ttl_ms = 10000};
    hf_check(cell_owner_parse(owner, strlen(owner), &c.owner));
    memset(c.session.secret, (int)(ask->session % 255) + 1, sizeof c.session.secret);
    snprintf(label, sizeof label, "s%lld", (long long)ask->session);
    if (kind == CELL_OPEN)
        c.label = text_of(label);
    return c;
}

const char *cell_fixture_line(const struct cell_fixture *d, const char *name)
{
    static _Thread_local char line[512];
    const struct cell_name *n = cell_name_find(d->state, name, strlen(name));
    cell_acquisitions waiters = {0};
    struct buf out = {0};
    const struct cell_acquisition *a = n ? cell_name_holders(n) : NULL;
    for (; a; a = a->next)
        buf_printf(&out, "%s:%lld ", a->session ? a->session->label : "-", (long long)a->fence);
    buf_str(&out, "|");
    if (n)
        cell_name_waiters(n, &waiters);
    for (size_t i = 0; i < waiters.n; i++)
        buf_printf(&out, waiters.v[i]->passed_over ? " (%s)" : " %s", waiters.v[i]->session->label);
    snprintf(line, sizeof line, "%.*s", (int)out.len, out.data);
    vec_close(&waiters);
    buf_close(&out);
    return line;
}
