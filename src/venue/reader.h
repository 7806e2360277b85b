/* What the readers of an event's layout share.  Internal to src/venue. */
#ifndef HF_VENUE_READER_H
#define HF_VENUE_READER_H

#include "venue/event_parse.h"
#include "venue/rows_cut.h"

#define ROWS_MAX 100000 /* of an event, all its sections together */
#define ROW_SEATS_MAX 100000
#define AREA_CAPACITY_MAX INT64_C(1000000000)
#define JSON_CONTAINERS_MAX 1000000 /* in a text that is read as a whole: some 250 MB */
#define COLOR_CHARS_MAX 64
#define IDS_LEN_MAX ((size_t)256 << 20) /* of composed ids, all together */

/* The definition as far as it has been read. */
struct reader {
    struct event_def *def;
    struct hf_err *err;
    int64_t n_seats, n_rows;
    const struct rows_cut *cut;    /* the rows of the plan's zones, if they were cut out; or NULL */
    struct complaints *complaints; /* NULL: only the first is wanted */
};

/* ---- reader.c ---- */

/* Called where a part of the definition was refused.  If all complaints are wanted and there is room
 * for one more, keeps what rd->err says, clears it and returns true: the reading may go on with the
 * next part.  The definition is then only good for event_def_free. */
bool complaint_kept(struct reader *rd);
/* Has anything been complained of so far? */
static inline bool has_complaints(const struct reader *rd)
{
    return rd->complaints && rd->complaints->list.n;
}

/* Reads the name of a section, row or area.  It becomes a part of seat ids, which are split at `-`.
 */
HF_MUST_USE bool read_name(const struct fields *f, char **ret);
/* Fails if a name appears twice.  Sorts `names`; O(n log n). */
HF_MUST_USE bool names_differ(const struct reader *rd, const char *path, const char *what,
                              char **names, size_t n);
/* Areas, in any event.  With a plan they may name an area of it. */
HF_MUST_USE bool read_areas(struct reader *rd, const struct fields *f, bool has_plan);
/* Counts rows of `seats` each.  Fails, naming the field, if the event gets too many. */
HF_MUST_USE bool count_rows(struct reader *rd, const struct fields *f, const char *name,
                            int64_t rows, int64_t seats);
/* Does the text have a control character (U+0000..1F, 7F, 80..9F)? */
bool has_control(const char *text, size_t len);
/* The index of the category of that name; -1 if there is none.  O(categories). */
int find_category(const struct event_def *def, const char *name);
/* Adds a category and its price; areas are read later.  Fails if there are too many. */
HF_MUST_USE bool add_category(struct reader *rd, const struct fields *f, const char *name,
                              const char *color, int64_t price, bool of_section);
/* Puts "<path>[<index>]." before the message of an error, so that paths are made only where they
 * are needed.  Always returns false. */
bool fail_under(struct hf_err *err, const char *list, size_t index);

/* Fills in what follows from the seats: is_placed, size and focus where they were not given, and
 * the index of ids.  Returns false if two seats have the same id: *ret_twice is the second one. */
HF_MUST_USE bool finish_venue(struct event_def *def, uint32_t *ret_twice);

/* ---- layout_parse.c ---- */

/* Sections, categories and areas of an event without a plan. */
/* Where complaints were kept, this fails, with nothing in rd->err: what comes after the layout needs
 * a whole one. */
HF_MUST_USE bool read_layout(struct reader *rd, const struct fields *f);

/* ---- plan_parse.c ---- */

/* Reads `plan`, `prices`, `areas`, `accessible` and `focus` of an event with a plan. */
/* Fails as read_layout does. */
HF_MUST_USE bool read_plan(struct reader *rd, const struct fields *f);

#endif
