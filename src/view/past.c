/* See past.h. */
#include "view/past.h"

#include <stdlib.h>

void past_map_begin(struct past_map *p, struct event *e, int64_t at)
{
    *p = (struct past_map){.event = e};
    event_map_read_at(e, at, &p->map);
    p->seen = hf_alloc(e->def->n_seats / 8 + 1);
}

void past_map_close(struct past_map *p)
{
    seat_map_close(&p->map);
    free(p->seen);
    *p = (struct past_map){0};
}

static bool is_known_place(const struct past_map *p, const struct audit_row *row)
{
    int64_t n =
        row->object == AUDIT_SEAT ? p->event->def->n_seats : (int64_t)p->event->def->areas.n;
    return row->item >= 0 && row->item < n;
}

/* What the row's places were at the moment, if the row is the first about them after it.  The
 * hold's expiry as logged by the transition that ended it is not before the moment unless it was so
 * at the moment, too: a renewal in between proves that the hold was live. */
static enum seat_status status_before(const struct past_map *p, const struct audit_row *row)
{
    bool was_due =
        row->from == SEAT_HELD && p->hold && row->hold == p->hold && p->hold_until <= p->map.at;
    if (!was_due)
        return (enum seat_status)row->from;
    return row->to == SEAT_BLOCKED ? SEAT_BLOCKED : SEAT_AVAILABLE;
}

static int64_t freed_by(const struct audit_row *row, enum seat_status from, enum seat_status to)
{
    return (to == SEAT_AVAILABLE ? row->quantity : 0) -
           (from == SEAT_AVAILABLE ? row->quantity : 0);
}

bool past_map_undo(struct past_map *p, const struct audit_row *row)
{
    switch (row->object) {
    case AUDIT_HOLD:
        p->hold = row->hold;
        p->hold_until = row->until;
        return true;
    case AUDIT_EVENT:
        if (!p->event_seen)
            p->map.status = (enum event_status)row->from;
        p->event_seen = true;
        return true;
    case AUDIT_SEAT:
        if (!is_known_place(p, row))
            return false;
        if (!(p->seen[row->item / 8] & 1 << row->item % 8))
            p->map.seats[row->item] = (uint8_t)status_before(p, row);
        p->seen[row->item / 8] |= (uint8_t)(1 << row->item % 8);
        return true;
    case AUDIT_AREA:
        if (!is_known_place(p, row))
            return false;
        p->map.available[row->item] -=
            freed_by(row, status_before(p, row), (enum seat_status)row->to);
        return true;
    default:
        return true;
    }
}

bool past_map_redo(struct past_map *p, const struct audit_row *row)
{
    switch (row->object) {
    case AUDIT_EVENT:
        p->map.status = (enum event_status)row->to;
        break;
    case AUDIT_SEAT:
        if (!is_known_place(p, row))
            return false;
        p->map.seats[row->item] =
            row->to == SEAT_HELD && row->until <= p->map.at ? SEAT_AVAILABLE : (uint8_t)row->to;
        break;
    case AUDIT_AREA:
        if (!is_known_place(p, row))
            return false;
        p->map.available[row->item] +=
            freed_by(row, (enum seat_status)row->from, (enum seat_status)row->to);
        break;
    default:
        break;
    }
    p->map.seq = row->seq;
    return true;
}
