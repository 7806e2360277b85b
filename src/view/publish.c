/* See publish.h. */
#include "view/publish.h"

void publish_begin(struct event *e) { lock_take(&e->lock); }

void publish_seat(struct event *e, uint32_t index, int64_t until_ms, int64_t seq)
{
    event_show_seat(e, index, until_ms);
    if (seq)
        feed_put(&e->feed,
                 &(struct change){.seq = seq, .item = index, .state = e->seats[index].status});
}

void publish_area(struct event *e, uint32_t index, int64_t seq)
{
    event_show_area(e, index);
    feed_put(&e->feed, &(struct change){.seq = seq,
                                        .item = index,
                                        .state = (uint32_t)e->areas[index].available,
                                        .kind = CHANGE_AREA});
}

void publish_terms(struct event *e, int64_t seq)
{
    feed_put(&e->feed, &(struct change){.seq = seq, .kind = CHANGE_EVENT});
}

void publish_end(struct event *e, const struct clock_row *clock)
{
    event_show_terms(e);
    e->clock = e->draft = *clock;
    atomic_store_explicit(&e->shown.seq, clock->seq, memory_order_release);
    lock_give(&e->lock);
}
