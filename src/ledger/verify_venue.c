/* See verify_venue.h. */
#include "ledger/verify_venue.h"

#include "ledger/layout.h"
#include "ledger/verify_internal.h"

void venue_check_category(struct venue_check *c, int64_t number, const char *name, size_t len)
{
    if (!c->def)
        c->def = hf_alloc(sizeof *c->def);
    if (name && number == (int64_t)c->def->categories.n) /* else too few are known in the end */
        vec_push(&c->def->categories)->name = hf_strndup(name, len);
}

void venue_check_section(struct venue_check *c, const char *layout, size_t len)
{
    const char *at = layout, *end = layout ? layout + len : NULL;
    struct layout_run run;
    uint64_t seats = 0;
    if (!c->def)
        return;
    struct section_def *section = vec_push(&c->def->sections);
    while (layout_next(&at, end, &run) && seats <= EVENT_SEATS_MAX)
        for (uint32_t i = 0; i < run.rows && seats <= EVENT_SEATS_MAX; i++) {
            seats += run.seats;
            vec_push(&section->rows)->seats = run.seats;
        }
}

void venue_check_area(struct venue_check *c)
{
    if (c->def)
        vec_push(&c->def->areas);
}

void venue_check_part(struct venue_check *c, const void *data, size_t len)
{
    buf_put(&c->packed, data, len);
}

void venue_check_end(struct venue_check *c, int64_t event, struct verify_report *report)
{
    if (c->def &&
        (!event_def_number(c->def) || !venue_unpack(c->def, c->packed.data, c->packed.len)))
        verify_violation(report, VERIFY_STRAYS,
                         "event %lld: its venue is damaged, or does not fit its sections, areas "
                         "and categories",
                         (long long)event);
    if (!c->def && c->packed.len)
        verify_violation(report, VERIFY_STRAYS, "event %lld has a venue and no categories",
                         (long long)event);
    event_def_free(c->def);
    buf_close(&c->packed);
    *c = (struct venue_check){0};
}
