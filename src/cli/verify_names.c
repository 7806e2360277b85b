/* See verify_names.h. */
#include "cli/verify_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "ledger/ledger.h"

#define MASK "*****************" /* as long as the secret in an id */

/* What a number after one of these words is. */
enum noun { EVENT, SEAT, AREA, HOLD, BOOKING, ENTRY, CHANNEL };
static const char *const nouns[] = {
    [EVENT] = "event ",     [SEAT] = "seat ",   [AREA] = "area ",      [HOLD] = "hold ",
    [BOOKING] = "booking ", [ENTRY] = "entry ", [CHANNEL] = "channel "};
#define N_NOUNS (sizeof nouns / sizeof *nouns)

/* If a noun and its number begin at `at`, returns their length, else 0. */
static size_t read_noun(const char *text, const char *at, enum noun *ret_noun, int64_t *ret_number)
{
    if (at > text && at[-1] != ' ')
        return 0;
    for (size_t i = 0; i < N_NOUNS; i++) {
        size_t len = strlen(nouns[i]);
        if (strncmp(at, nouns[i], len) != 0 || at[len] < '0' || at[len] > '9')
            continue;
        char *end;
        *ret_noun = (enum noun)i;
        *ret_number = strtoll(at + len, &end, 10);
        return (size_t)(end - at);
    }
    return 0;
}

/* The event that the words are about; 0 if they name none. */
static int64_t event_of(const char *text)
{
    enum noun noun = EVENT;
    int64_t number = 0, by_hold = 0;
    for (const char *at = text; *at; at++) {
        if (!read_noun(text, at, &noun, &number))
            continue;
        if (noun == EVENT)
            return number;
        if ((noun == HOLD || noun == BOOKING || noun == ENTRY) && !by_hold)
            by_hold = HOLD_EVENT(number);
    }
    return by_hold;
}

static void put_masked(struct buf *out, const char *prefix, int64_t key)
{
    const struct id id = {.key = key};
    char text[ID_TEXT_SIZE];
    size_t len = id_format(text, prefix, &id);
    buf_put(out, text, len - (sizeof MASK - 1));
    buf_lit(out, MASK);
}

/* Appends `Stalls-A-12`; returns false if there is no such seat. */
static bool put_seat(struct buf *out, const struct event_def *def, int64_t index)
{
    if (def->venue && index >= 0 && index < def->n_seats) {
        buf_printf(out, "seat %s", venue_id(def->venue, (uint32_t)index));
        return true;
    }
    for (size_t s = 0; s < def->sections.n; s++) {
        const struct section_def *section = &def->sections.v[s];
        for (size_t r = 0; r < section->rows.n; r++) {
            const struct row_def *row = &section->rows.v[r];
            if (index < row->first || index - row->first >= row->seats)
                continue;
            buf_printf(out, "seat %s-%s-", section->name, row->name);
            buf_int(out, index - row->first + 1);
            return true;
        }
    }
    return false;
}

/* Appends what the number stands for; returns false if it stands for nothing. */
static bool put_name(struct buf *out, const struct event_def *def, enum noun noun, int64_t number)
{
    char id[ID_TEXT_SIZE];
    switch (noun) {
    case EVENT:
        if (number != def->id.key)
            return false;
        buf_put(out, id, id_format(id, "evt_", &def->id));
        return true;
    case SEAT:
        return put_seat(out, def, number);
    case AREA:
        if ((uint64_t)number >= def->areas.n)
            return false;
        buf_printf(out, "area %s", def->areas.v[number].name);
        return true;
    case HOLD:
    case BOOKING:
        if (number)
            put_masked(out, noun == HOLD ? "hold_" : "bkg_", number);
        else
            buf_str(out, noun == HOLD ? "no hold" : "no booking");
        return true;
    case ENTRY:
        put_masked(out, "wait_", number);
        return true;
    case CHANNEL:
        if ((uint64_t)number > def->terms.channels.n)
            return false;
        if (number)
            buf_printf(out, "channel %s", def->terms.channels.v[number - 1]);
        else
            buf_str(out, "no channel");
        return true;
    }
    return false;
}

static void rewrite(char example[VERIFY_EXAMPLE_SIZE], const struct event_def *def)
{
    struct buf out = {0};
    enum noun noun = EVENT;
    int64_t number = 0;
    for (const char *at = example; *at;) {
        size_t len = read_noun(example, at, &noun, &number);
        if (!len || !put_name(&out, def, noun, number)) {
            buf_char(&out, *at++);
            continue;
        }
        at += len;
    }
    size_t len = out.len < VERIFY_EXAMPLE_SIZE ? out.len : VERIFY_EXAMPLE_SIZE - 1;
    len = utf8_valid_len(out.data, len);
    if (out.data)
        memcpy(example, out.data, len);
    example[len] = '\0';
    buf_close(&out);
}

/* Most examples are of one event, so the last one that was read is kept. */
static struct event_def *read_event(struct ledger *l, int64_t event, struct event_def *last)
{
    struct event_def *def = NULL;
    struct clock_row clock;
    struct hf_err err;
    if (last && last->id.key == event)
        return last;
    event_def_free(last);
    return event && ledger_event_read(l, event, &def, &clock, &err) == HF_OK ? def : NULL;
}

void verify_names(const char *ledger_url, const struct clock *clock, struct verify_report *report)
{
    const struct db_options options = {.clock = clock};
    struct ledger *l = NULL;
    struct event_def *def = NULL;
    struct hf_err err;
    if ((!report->violations && !report->owed) ||
        ledger_open(ledger_url, &options, &l, &err) != HF_OK)
        return;
    for (size_t i = 0; i < VERIFY_COUNT; i++) {
        struct verify_check *check = &report->checks[i];
        for (int64_t k = 0; k < check->violations && k < VERIFY_EXAMPLES; k++) {
            def = read_event(l, event_of(check->examples[k]), def);
            if (def)
                rewrite(check->examples[k], def);
        }
    }
    for (int64_t k = 0; k < report->owed && k < VERIFY_EXAMPLES; k++) {
        def = read_event(l, event_of(report->owed_examples[k]), def);
        if (def)
            rewrite(report->owed_examples[k], def);
    }
    event_def_free(def);
    ledger_close(l);
}
