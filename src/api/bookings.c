/* /v1/bookings: one booking by its id.  On HTTP threads. */
#include "api/routes.h"

void bookings_get(struct request *r)
{
    struct call *c = call_of(r);
    struct id id = {0};
    if (!id_parse(r->segment.data, r->segment.len, "bkg_", &id))
        id.key = 0;
    struct event *e = call_event(c, HOLD_EVENT(id.key), VERDICT_NO_SUCH_BOOKING, bookings_get);
    if (!e)
        return;
    c->command.kind = CMD_BOOKING_GET;
    c->command.event = e;
    c->command.booking_get.id = id;
    call_submit(c, call_answer);
}
