/* See render.h.  Rows of the log, and a seat's past. */
#include <string.h>

#include "api/render.h"

static const char *const object_texts[] = {
    [AUDIT_EVENT] = "event",        [AUDIT_SEAT] = "seat",       [AUDIT_AREA] = "area",
    [AUDIT_HOLD] = "hold",          [AUDIT_BOOKING] = "booking", [AUDIT_PAYMENT] = "payment",
    [AUDIT_WAIT] = "waitlist_entry"};
static const char *const cause_texts[] = {
    [CAUSE_CREATE] = "create",   [CAUSE_HOLD] = "hold",         [CAUSE_RENEW] = "renew",
    [CAUSE_RELEASE] = "release", [CAUSE_EXPIRE] = "expire",     [CAUSE_CONFIRM] = "confirm",
    [CAUSE_RESCUE] = "rescue",   [CAUSE_BLOCK] = "block",       [CAUSE_UNBLOCK] = "unblock",
    [CAUSE_OPEN] = "open",       [CAUSE_CLOSE] = "close",       [CAUSE_EVICT] = "evict",
    [CAUSE_CANCEL] = "cancel",   [CAUSE_CHANGE] = "change",     [CAUSE_ARCHIVE] = "archive",
    [CAUSE_BOOK] = "book",       [CAUSE_PAYMENT] = "payment",   [CAUSE_REFUND] = "refund",
    [CAUSE_RESTORE] = "restore", [CAUSE_WAITLIST] = "waitlist", [CAUSE_PAUSE] = "pause",
    [CAUSE_RESUME] = "resume"};

/* NULL, which is rendered as null, if the number is not in the list: the row has been damaged. */
static const char *text_of(const char *const *texts, size_t n, int i)
{
    return i >= 0 && (size_t)i < n ? texts[i] : NULL;
}
#define TEXT_OF(texts, i) text_of(texts, sizeof(texts) / sizeof *(texts), (int)(i))

/* The secret of a hold is lost when the hold is pruned, which the entry it was offered to may
 * outlive. */
static void put_named_id(struct buf *out, const char *name, const char *prefix, int64_t key,
                         const uint8_t secret[ID_SECRET_SIZE], bool masked)
{
    static const uint8_t lost[ID_SECRET_SIZE];
    struct id id = {.key = key};
    memcpy(id.secret, secret, ID_SECRET_SIZE);
    if (key)
        render_id(out, name, prefix, &id, masked || memcmp(secret, lost, ID_SECRET_SIZE) == 0);
    else
        json_put_text(out, name, NULL);
}

static void put_item(const struct event *e, const struct audit_row *row, struct buf *out)
{
    bool in_seats = row->object == AUDIT_SEAT && row->item >= 0 && row->item < e->def->n_seats;
    bool in_areas =
        row->object == AUDIT_AREA && row->item >= 0 && (size_t)row->item < e->def->areas.n;
    json_put_name(out, "seat");
    if (in_seats)
        render_seat(e, (uint32_t)row->item, out);
    else
        buf_lit(out, "null");
    json_put_text(out, "area", in_areas ? e->def->areas.v[row->item].name : NULL);
}

/* What the places are held or sold as, or given back as by a change of the hold; else null. */
static void put_type(struct event *e, const struct audit_row *row, struct buf *out)
{
    if (!atomic_load_explicit(&e->shown.has_types, memory_order_relaxed))
        return;
    const struct event_terms *terms = event_terms_take(e);
    bool is_place = row->object == AUDIT_SEAT || row->object == AUDIT_AREA;
    bool is_told = row->to == SEAT_HELD || row->to == SEAT_BOOKED || row->cause == CAUSE_CHANGE;
    bool has_type = is_place && is_told && row->type < terms->types.n;
    json_put_text(out, "type", has_type ? terms->types.v[row->type].id : NULL);
    event_terms_give(terms);
}

/* The row that begins an entry of a waiting list has its number in place of a time. */
static bool is_new_entry(const struct audit_row *row)
{
    return row->object == AUDIT_WAIT && row->cause == CAUSE_CREATE;
}

/* The secret of an entry is not in the log. */
static void put_entry(const struct audit_row *row, struct buf *out)
{
    const struct id id = {.key = HOLD_KEY(row->event, row->fence)};
    render_id(out, "waitlist_entry", "wait_", &id, true);
    if (is_new_entry(row))
        json_put_int(out, "number", row->until);
}

void render_audit(struct event *e, const struct audit_entry *entry, bool masked, struct buf *out)
{
    const struct audit_row *row = &entry->row;
    buf_char(out, '{');
    json_put_int(out, "seq", row->seq);
    json_put_time(out, "at", row->at);
    json_put_text(out, "event", event_id_text(e));
    json_put_text(out, "object", TEXT_OF(object_texts, row->object));
    put_item(e, row, out);
    json_put_int_or_null(out, "quantity", row->quantity);
    put_type(e, row, out);
    json_put_text(out, "from", status_text(row->object, row->from));
    json_put_text(out, "to", status_text(row->object, row->to));
    put_named_id(out, "hold", "hold_", row->hold, entry->hold_secret, masked);
    put_named_id(out, "booking", "bkg_", row->booking, entry->booking_secret, masked);
    json_put_int_or_null(out, "fence", row->fence);
    if (row->object == AUDIT_WAIT)
        put_entry(row, out);
    json_put_time_or_null(out, "until", is_new_entry(row) ? 0 : row->until);
    json_put_text(out, "cause", TEXT_OF(cause_texts, row->cause));
    bool hides_address = masked && actor_is_address(entry->actor);
    json_put_text(out, "actor",
                  hides_address   ? ACTOR_ADDRESS "*"
                  : *entry->actor ? entry->actor
                                  : NULL);
    buf_char(out, '}');
}

void render_seat_past(struct event *e, uint32_t seat, const struct seat_past *past, struct buf *out)
{
    static const uint8_t no_secret[ID_SECRET_SIZE];
    const struct row *row = event_row_of(e, seat);
    const struct section_def *section = &e->def->sections.v[row->section];
    buf_lit(out, "{\"object\":\"seat\"");
    json_put_text(out, "event", event_id_text(e));
    json_put_name(out, "id");
    render_seat(e, seat, out);
    json_put_text(out, "section", section->name);
    json_put_text(out, "row", row->name);
    if (e->def->venue) {
        json_put_text(out, "label", venue_label(e->def->venue, seat));
        json_put_text(out, "category",
                      event_def_category_name(e->def, event_seat_category(e, seat)));
    } else {
        json_put_int_or_null(out, "number", seat - row->first + 1);
    }
    json_put_text(out, "tier", section->tier);
    const struct event_terms *terms = event_terms_take(e);
    json_put_int(out, "price", terms->prices.v[event_seat_category(e, seat)]);
    event_terms_give(terms);
    json_put_time(out, "at", past->at);
    json_put_text(out, "status", status_text(AUDIT_SEAT, (int)past->status));
    put_named_id(out, "hold", "hold_", past->hold, no_secret, true);
    json_put_int_or_null(out, "fence", past->fence);
    json_put_time_or_null(out, "until", past->until);
    json_open(out, "history", '[');
    for (size_t i = 0; i < past->n; i++) {
        if (i)
            buf_char(out, ',');
        render_audit(e, &past->history[i], true, out);
    }
    buf_char(out, ']');
    json_put_bool(out, "history_has_more", past->more);
    json_put_bool(out, "history_pruned", past->pruned);
    buf_char(out, '}');
}
