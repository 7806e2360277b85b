/* A state is made, collects the effects of its commands, forgets what has ended, and is freed. */
#include "cell/state_internal.h"

/* ---- beginning ---- */

static struct order_key name_key(const struct order_node *node)
{
    const struct cell_name *n = heap_item(node, struct cell_name, order);
    return (struct order_key){.text = {.data = n->text, .len = n->len}};
}

static struct order_key session_key(const struct order_node *node)
{
    return (struct order_key){.number = heap_item(node, struct session, order)->pub.id.key};
}

struct cell_state *cell_state_new(void)
{
    struct cell_state *s = hf_alloc(sizeof *s);
    s->names_by_text.key = name_key;
    s->sessions_by_key.key = session_key;
    return s;
}

/* ---- effects ---- */

void state_effect(struct cell_state *s, enum cell_effect_kind kind, struct cell_acquisition *a)
{
    *vec_push(&s->effects) =
        (struct cell_effect){.kind = kind,
                             .name = a->name,
                             .acquisition = kind == CELL_EFFECT_VALUE ? NULL : a,
                             .session = a->session,
                             .fence = a->fence};
}

const struct cell_effect *cell_state_effects(const struct cell_state *s, size_t *ret_n)
{
    *ret_n = s->effects.n;
    return s->effects.v;
}

void cell_state_clear_effects(struct cell_state *s)
{
    vec_clear(&s->effects);
    for (struct acquisition *a = s->dead_acquisitions, *next; a; a = next) {
        next = a->dead_next;
        acquisition_free(a);
    }
    for (struct session *session = s->dead_sessions, *next; session; session = next) {
        next = session->dead_next;
        free(session);
    }
    for (struct cell_name *n = s->dead_names, *next; n; n = next) {
        next = n->free_next;
        name_free(n);
    }
    s->dead_acquisitions = NULL;
    s->dead_sessions = NULL;
    s->dead_names = NULL;
}

/* ---- the end ---- */

static void free_holders_and_waiters(struct cell_name *n)
{
    struct line *lines[] = {&n->holders,  &n->passed_over, &n->lines[0],
                            &n->lines[1], &n->lines[2],    &n->lines[3]};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (struct cell_acquisition *a = lines[i]->first, *next; a; a = next) {
            next = a->next;
            acquisition_free(private_of(a));
        }
}

void cell_state_free(struct cell_state *s)
{
    if (!s)
        return;
    cell_state_clear_effects(s);
    for (struct table_node *node = table_first(&s->names), *next; node; node = next) {
        next = table_after(&s->names, node);
        free_holders_and_waiters((struct cell_name *)node);
        name_free((struct cell_name *)node);
    }
    for (struct table_node *node = table_first(&s->sessions), *next; node; node = next) {
        next = table_after(&s->sessions, node);
        free(heap_item(node, struct session, node));
    }
    table_free_items(&s->agents);
    table_free_items(&s->accounts);
    table_free_items(&s->ended);
    table_close(&s->names);
    table_close(&s->sessions);
    table_close(&s->acquisitions);
    heap_close(&s->sessions_by_ttl);
    vec_close(&s->ttls);
    vec_close(&s->effects);
    vec_close(&s->touched);
    vec_close(&s->candidates);
    free(s);
}
