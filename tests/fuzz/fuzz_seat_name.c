/* Names of seats, in an event whose sections and rows are easily mistaken for one another.  A name
 * that is found is that seat's own name, so no seat has two names. */
#include "fuzz.h"

#include "view/view.h"

static const char *const sections[] = {"S", "SA", "A", "1", "Balkon \xc3\xbc", "%2d", "Stalls"};
static const char *const rows[] = {"A", "AA", "1", "11", "S", "\xe2\x82\xac", " "};
#define N_NAMES 7
#define SEATS 12

static struct event *event_make(void)
{
    struct event_def *def = hf_alloc(sizeof *def);
    *def = (struct event_def){.id = {.key = 1}, .currency = "usd"};
    def->terms.name = hf_strndup("E", 1);
    for (size_t s = 0; s < N_NAMES; s++) {
        struct section_def *section = vec_push(&def->sections);
        section->name = hf_strndup(sections[s], strlen(sections[s]));
        section->listed = true;
        *vec_push(&def->terms.prices) = 0;
        for (size_t r = 0; r < N_NAMES; r++) {
            struct row_def *row = vec_push(&section->rows);
            row->name = hf_strndup(rows[r], strlen(rows[r]));
            row->seats = SEATS;
        }
    }
    hf_check(event_def_number(def));
    return event_new(def, &(struct clock_row){.event = 1, .seq = 1});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct event *e;
    if (!e)
        e = event_make();
    char *text = fuzz_text(data, size);
    uint32_t index = UINT32_MAX;
    if (event_seat_find(e, text, size, &index)) {
        struct buf name = {0};
        hf_check(index < e->def->n_seats);
        event_seat_name(e, index, &name);
        hf_check(name.len == size && memcmp(name.data, text, size) == 0);
        buf_close(&name);
    } else {
        hf_check(index == UINT32_MAX);
    }
    free(text);
    return 0;
}
