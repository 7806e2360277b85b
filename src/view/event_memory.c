/* How much memory an event takes, from the sizes of its parts; see view.h.  An estimate that errs
 * by a few per cent: what the allocator adds is not known. */
#include "view/snapshot.h"
#include "view/view.h"

#define SMALL_BLOCK 32 /* a short text of its own, with what the allocator adds */

static size_t buf_memory(const struct buf *b) { return b->cap; }

/* Another thread may be packing it. */
static size_t snapshot_memory(const struct snapshot *s)
{
    if (!s)
        return 0;
    bool is_packed = atomic_load_explicit(&s->is_packed, memory_order_acquire);
    return sizeof *s + buf_memory(&s->text) + (is_packed ? buf_memory(&s->packed) : 0);
}

static size_t venue_memory(const struct venue *v)
{
    size_t per_seat = sizeof *v->ids + sizeof *v->labels + sizeof *v->categories + sizeof *v->flags;
    per_seat += v->extras ? sizeof *v->extras : 0;
    per_seat += v->x ? 2 * sizeof *v->x : 0;
    size_t slots = v->index ? (size_t)v->index_mask + 1 : 0;
    return sizeof *v + v->cap * per_seat + slots * sizeof *v->index + buf_memory(&v->text);
}

/* Names of sections, rows and areas are texts of their own. */
static size_t def_memory(const struct event_def *def)
{
    size_t bytes = sizeof *def + buf_memory(&def->packed);
    for (size_t i = 0; i < def->sections.n; i++) {
        const struct section_def *section = &def->sections.v[i];
        bytes += sizeof *section + SMALL_BLOCK;
        bytes += section->rows.n * (sizeof *section->rows.v + SMALL_BLOCK);
    }
    bytes += def->areas.n * (sizeof *def->areas.v + SMALL_BLOCK);
    return bytes + (def->venue ? venue_memory(def->venue) : 0);
}

/* The index of free seats has bits, and of each row a line of 24 bytes, and two nodes of its tree.
 * With a venue there is one by category, too, with 4 bytes per seat for slots; the other one has 12
 * for slots and distances where seats have positions. */
static size_t best_memory(const struct event *e)
{
    size_t n_indexes = e->def->venue ? 2 : 1, per_seat = e->def->venue ? 4 * sizeof(uint32_t) : 0;
    return e->def->n_seats * per_seat + n_indexes * (e->def->n_seats / 4 + (size_t)e->rows.n * 64);
}

size_t event_memory(struct event *e)
{
    size_t n_seats = e->def->n_seats;
    size_t bytes = sizeof *e + n_seats * sizeof *e->seats + def_memory(e->def) + best_memory(e);
    bytes += e->rows.n * sizeof *e->rows.list;
    bytes += e->rows.index ? ((size_t)e->rows.index_mask + 1) * sizeof *e->rows.index : 0;
    bytes += e->def->areas.n * sizeof *e->areas;
    if (atomic_load_explicit(&e->heat.counts, memory_order_relaxed))
        bytes += n_seats * sizeof(uint32_t);
    lock_take(&e->lock);
    bytes += e->feed.cap * sizeof *e->feed.ring;
    lock_give(&e->lock);
    lock_take(&e->documents.lock);
    bytes += snapshot_memory(e->documents.map) + snapshot_memory(e->documents.plan);
    lock_give(&e->documents.lock);
    return bytes;
}
