/* See render.h.  Entries of waiting lists. */
#include "api/render.h"

/* The member `types` of a wish: how many places of each ticket type.  Nothing where no type was
 * named. */
static void put_types(const struct event_terms *terms, const struct wait_wish *wish,
                      const char *name, struct buf *out)
{
    json_open(out, name, '{');
    for (uint32_t i = 0; i < terms->types.n && i < TYPES_MAX; i++) {
        if (!wish->types[i])
            continue;
        json_put_text(out, NULL, terms->types.v[i].id);
        buf_char(out, ':');
        buf_int(out, wish->types[i]);
    }
    buf_char(out, '}');
}

static bool has_types(const struct event_terms *terms, const struct wait_wish *wish)
{
    for (uint32_t i = 0; i < terms->types.n && i < TYPES_MAX; i++)
        if (wish->types[i])
            return true;
    return false;
}

static void put_best(const struct event_def *def, const struct event_terms *terms,
                     const struct wait_wish *wish, struct buf *out)
{
    json_open(out, "best_available", '{');
    json_put_int(out, "quantity", wish->quantity);
    if (wish->section >= 0)
        json_put_text(out, "section", def->sections.v[wish->section].name);
    if (wish->tier >= 0)
        json_put_text(out, "tier", def->sections.v[wish->tier].tier);
    if (wish->category)
        json_put_text(out, "category", event_def_category_name(def, wish->category - 1));
    json_put_bool(out, "accessible", wish->accessible);
    json_put_bool(out, "adjacent", wish->adjacent);
    if (has_types(terms, wish))
        put_types(terms, wish, "types", out);
    buf_char(out, '}');
}

static void put_area(const struct event_def *def, const struct event_terms *terms,
                     const struct wait_wish *wish, struct buf *out)
{
    const char *area = def->areas.v[wish->area].name;
    json_open(out, "areas", '{');
    json_put_text(out, NULL, area);
    buf_char(out, ':');
    if (has_types(terms, wish))
        put_types(terms, wish, NULL, out);
    else
        buf_int(out, wish->quantity);
    buf_char(out, '}');
}

/* What is waited for, in the form in which a request says it. */
static void put_wish(struct typed_event e, const struct wait_wish *wish, struct buf *out)
{
    const struct event_terms *shown = e.terms ? NULL : event_terms_take(e.event);
    const struct event_terms *terms = e.terms ? e.terms : shown;
    if (!event_def_has_wish(e.event->def, wish))
        ; /* a damaged row tells nothing */
    else if (wish->area >= 0)
        put_area(e.event->def, terms, wish, out);
    else
        put_best(e.event->def, terms, wish, out);
    event_terms_give(shown);
}

void render_wait(struct typed_event e, const struct wait_row *w, const struct wait_view *view,
                 struct buf *out)
{
    bool is_offered = w->status == WAIT_OFFERED && w->offer.id.key;
    int64_t left =
        is_offered && w->offer.expires_at > view->now ? w->offer.expires_at - view->now : 0;
    buf_lit(out, "{\"object\":\"waitlist_entry\"");
    render_id(out, "id", "wait_", &w->id, view->masked);
    json_put_text(out, "event", event_id_text(e.event));
    json_put_text(out, "status", wait_status_text(w->status));
    json_put_int(out, "number", w->number);
    if (view->ahead >= 0 && w->status == WAIT_WAITING)
        json_put_int(out, "ahead", view->ahead);
    if (w->offer.id.key)
        render_id(out, "hold", "hold_", &w->offer.id, view->masked);
    else
        json_put_text(out, "hold", NULL);
    if (is_offered) {
        json_put_time(out, "expires_at", w->offer.expires_at);
        json_put_int(out, "expires_in_ms", left);
    }
    if (w->status == WAIT_ENDED)
        json_put_text(out, "reason", wait_reason_text(w->reason));
    put_wish(e, &w->wish, out);
    json_put_bytes(out, "owner", w->owner, w->owner_len);
    json_put_time_or_null(out, "until", w->until);
    json_put_time(out, "created_at", w->created_at);
    json_put_time_or_null(out, "ended_at", w->ended_at);
    if (w->metadata) {
        json_put_name(out, "metadata");
        buf_put(out, w->metadata, w->metadata_len);
    }
    buf_char(out, '}');
}
