/* See waitlist.h. */
#include "model/waitlist.h"

#include <stdlib.h>
#include <string.h>

const char *wait_status_text(enum wait_status status)
{
    static const char *const texts[WAIT_STATUSES] = {
        [WAIT_WAITING] = "waiting", [WAIT_OFFERED] = "offered", [WAIT_ACCEPTED] = "accepted",
        [WAIT_LAPSED] = "lapsed",   [WAIT_LEFT] = "left",       [WAIT_ENDED] = "ended"};
    return (unsigned)status < WAIT_STATUSES ? texts[status] : NULL;
}

const char *wait_reason_text(enum wait_reason reason)
{
    static const char *const texts[WAIT_REASONS] = {[WAIT_REASON_UNTIL] = "until",
                                                    [WAIT_REASON_UNREAD] = "unread",
                                                    [WAIT_REASON_OWNER_LIMIT] = "owner_limit",
                                                    [WAIT_REASON_TOO_MANY] = "too_many_places",
                                                    [WAIT_REASON_SALES_ENDED] = "sales_ended",
                                                    [WAIT_REASON_CANCELLED] = "cancelled",
                                                    [WAIT_REASON_OFF] = "off",
                                                    [WAIT_REASON_EVICTED] = "evicted",
                                                    [WAIT_REASON_ERASED] = "erased"};
    return (unsigned)reason < WAIT_REASONS ? texts[reason] : NULL;
}

bool wait_wish_equal(const struct wait_wish *a, const struct wait_wish *b)
{
    _Static_assert(sizeof *a == TYPES_MAX * 2 + 5 * 4 + 2 * 2, "it has no padding");
    return memcmp(a, b, sizeof *a) == 0;
}

struct wait_wish wait_wish_untyped(const struct wait_wish *wish)
{
    struct wait_wish untyped = *wish;
    memset(untyped.types, 0, sizeof untyped.types);
    return untyped;
}

bool wait_wish_is_sound(const struct wait_wish *wish, size_t n_sections, size_t n_categories,
                        size_t n_areas)
{
    return wish->quantity && wish->quantity <= HOLD_PLACES_MAX &&
           wish->section < (int64_t)n_sections && wish->tier < (int64_t)n_sections &&
           wish->category <= n_categories && wish->area < (int64_t)n_areas;
}

void wait_row_close(struct wait_row *row)
{
    free(row->owned);
    *row = (struct wait_row){0};
}

int64_t wait_due(int64_t until, int64_t read_at, int64_t alive_ms)
{
    int64_t due = until ? until : INT64_MAX;
    return alive_ms && read_at + alive_ms < due ? read_at + alive_ms : due;
}
