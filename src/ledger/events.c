/* Events: the worker inserts one inside a batch; the loader and the readers read it back, with its
 * layout, its areas and the seats that have rows. */
#include <string.h>

#include "ledger/layout.h"
#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"

/* ---- inserting ---- */

/* Room for all layouts is reserved first: they must not move once args point into them. */
static void put_sections(struct ledger *l, const struct event_def *def)
{
    size_t room = 0;
    for (size_t s = 0; s < def->sections.n; s++)
        room += layout_size_max(&def->sections.v[s]);
    l->text.len = 0;
    buf_reserve(&l->text, room + 1);
    for (size_t s = 0; s < def->sections.n; s++) {
        const struct section_def *section = &def->sections.v[s];
        size_t start = l->text.len;
        layout_write(section, !def->venue, &l->text);
        ledger_arg_int(l, def->id.key);
        ledger_arg_int(l, (int64_t)s);
        ledger_arg(l, db_text(section->name, strlen(section->name)));
        ledger_arg(l, db_text(section->tier, section->tier ? strlen(section->tier) : 0));
        ledger_arg_int(l, def->categories.n ? 0 : def->terms.prices.v[s]);
        ledger_arg_int(l, section->listed);
        ledger_arg(l, db_text(l->text.data + start, l->text.len - start));
    }
}

static void put_areas(struct ledger *l, const struct event_def *def)
{
    for (size_t a = 0; a < def->areas.n; a++) {
        const struct area_def *area = &def->areas.v[a];
        ledger_arg_int(l, def->id.key);
        ledger_arg_int(l, (int64_t)a);
        ledger_arg(l, db_text(area->name, strlen(area->name)));
        ledger_arg_int(l, def->terms.prices.v[event_def_categories(def) + a]);
        ledger_arg_int(l, area->capacity);
    }
}

static enum hf_status insert_layout(struct ledger *l, const struct event_def *def,
                                    struct hf_err *err)
{
    vec_clear(&l->args);
    put_sections(l, def);
    enum hf_status status = ledger_exec_args(l, ST_SECTION_INSERT, def->sections.n, NULL, err);
    if (status != HF_OK)
        return status;
    put_areas(l, def);
    status = ledger_exec_args(l, ST_AREA_INSERT, def->areas.n, NULL, err);
    return status == HF_OK && def->venue ? ledger_venue_insert(l, def, err) : status;
}

static enum hf_status next_event(struct ledger *l, int64_t *ret_key, struct hf_err *err)
{
    int64_t key;
    enum hf_status status = ledger_read_int(l, ST_EVENT_NEXT, &key, err);
    if (status != HF_OK)
        return status;
    if (key > EVENT_KEY_MAX)
        return hf_err_set(err, HF_INTERNAL, "no event number is left");
    *ret_key = key;
    return HF_OK;
}

static enum hf_status insert_row(struct ledger *l, const struct event_def *row, struct hf_err *err)
{
    vec_clear(&l->args);
    l->text.len = 0;
    buf_reserve(&l->text, terms_text_max(&row->terms));
    BIND(EVENT_KEPT);
    ledger_terms_args(l, &row->terms);
    enum hf_status status = ledger_exec(l, ST_EVENT_INSERT, l->args.v, NULL, err);
    vec_clear(&l->args);
    return status;
}

static enum hf_status insert_clock(struct ledger *l, const struct event_def *def,
                                   struct hf_err *err)
{
    const struct db_value args[] = {db_int(def->id.key), db_int(def->created_at)};
    return ledger_exec(l, ST_CLOCK_INSERT, args, NULL, err);
}

static enum hf_status log_creation(struct ledger *l, const struct event_def *def, const char *actor,
                                   struct hf_err *err)
{
    struct audit_row row = {.event = def->id.key,
                            .seq = 1,
                            .at = def->created_at,
                            .object = AUDIT_EVENT,
                            .cause = CAUSE_CREATE,
                            .item = -1,
                            .to = EVENT_OPEN,
                            .actor = actor};
    const struct ledger_batch batch = {.audit = {.v = &row, .n = 1}};
    return ledger_write(l, &batch, err);
}

enum hf_status ledger_event_insert(struct ledger *l, struct event_def *def, int64_t now,
                                   const char *actor, struct hf_err *err)
{
    enum hf_status status = next_event(l, &def->id.key, err);
    if (status != HF_OK)
        return status;
    def->created_at = now;
    def->status = EVENT_OPEN;
    if ((status = insert_row(l, def, err)) != HF_OK ||
        (status = insert_clock(l, def, err)) != HF_OK ||
        (status = insert_layout(l, def, err)) != HF_OK)
        return status;
    return log_creation(l, def, actor, err);
}

/* ---- reading ---- */

/* Reads the layout in a column.  Returns false if it is damaged or has too many seats. */
static bool read_rows(struct db_stmt *stmt, int column, struct section_def *section)
{
    size_t len;
    const char *at = db_column_data(stmt, column, &len), *end = at ? at + len : NULL;
    struct layout_run run;
    char name[ROW_NAME_SIZE];
    uint64_t seats = 0;
    while (layout_next(&at, end, &run)) {
        seats += (uint64_t)run.rows * run.seats;
        if (seats > EVENT_SEATS_MAX)
            return false;
        for (uint32_t i = 0; i < run.rows; i++) {
            row_name((uint32_t)section->rows.n, name);
            struct row_def *row = vec_push(&section->rows);
            row->name =
                run.name ? hf_strndup(run.name, run.name_len) : hf_strndup(name, strlen(name));
            row->seats = run.seats;
        }
    }
    return at == end;
}

static enum hf_status read_sections(struct ledger *l, int64_t event, struct event_def *def,
                                    struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row, is_sound = true;
    enum hf_status status = ledger_query(l, ST_SECTIONS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct section_def *section = vec_push(&def->sections);
        section->name = column_strdup(stmt, 0);
        section->tier = column_strdup(stmt, 1);
        if (!def->categories.n)
            *vec_push(&def->terms.prices) = db_column_int(stmt, 2);
        section->category = -1;
        section->listed = db_column_int(stmt, 3) != 0;
        is_sound &= read_rows(stmt, 4, section);
    }
    if (status == HF_OK && !is_sound)
        return hf_err_set(err, HF_INTERNAL, "event %lld has a damaged layout", (long long)event);
    return status;
}

/* Reads the rows of seats of an event that was created before schema version 3. */
static enum hf_status read_old_rows(struct ledger *l, int64_t event, struct event_def *def,
                                    struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_ROWS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        int64_t s = db_column_int(stmt, 0);
        if (s < 0 || s >= (int64_t)def->sections.n) {
            stmt->driver->finish(stmt);
            return hf_err_set(err, HF_INTERNAL, "event %lld has a row of no section",
                              (long long)event);
        }
        struct row_def *row = vec_push(&def->sections.v[s].rows);
        row->name = column_strdup(stmt, 1);
        row->seats = (uint32_t)db_column_int(stmt, 2);
    }
    return status;
}

static enum hf_status read_areas(struct ledger *l, int64_t event, struct event_def *def,
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_AREAS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct area_def *area = vec_push(&def->areas);
        area->name = column_strdup(stmt, 0);
        *vec_push(&def->terms.prices) = db_column_int(stmt, 1);
        area->capacity = db_column_int(stmt, 2);
    }
    return status;
}

/* Reads sections, rows and areas, and numbers the seats. */
static enum hf_status read_layout(struct ledger *l, int64_t event, struct event_def *def,
                                  struct hf_err *err)
{
    enum hf_status status;
    if ((status = ledger_categories_read(l, def, event, err)) != HF_OK ||
        (status = read_sections(l, event, def, err)) != HF_OK ||
        (status = read_old_rows(l, event, def, err)) != HF_OK)
        return status;
    for (size_t i = 0; i < def->sections.n; i++)
        if (!def->sections.v[i].rows.n)
            return hf_err_set(err, HF_INTERNAL, "event %lld has a section without rows",
                              (long long)event);
    if ((status = read_areas(l, event, def, err)) != HF_OK)
        return status;
    if (!event_def_number(def))
        return hf_err_set(err, HF_INTERNAL, "event %lld has too many seats", (long long)event);
    return ledger_venue_read(l, def, event, err);
}

#define READ_OWNED(at, field) row->field = column_strdup(stmt, at);

static struct event_def *event_from_row(struct db_stmt *stmt)
{
    struct event_def *row = hf_alloc(sizeof *row);
    READ(EVENT_KEPT);
    terms_from_row(stmt, &row->terms);
    return row;
}

/* Starts EVENT_READ and moves to its row; *ret_row is false if there is no such event. */
static enum hf_status query_event(struct ledger *l, int64_t event, struct db_stmt **ret_stmt,
                                  bool *ret_row, struct hf_err *err)
{
    const struct db_value args[] = {db_int(event)};
    enum hf_status status = ledger_query(l, ST_EVENT_READ, args, ret_stmt, err);
    return status == HF_OK ? ledger_next(*ret_stmt, ret_row, err) : status;
}

enum hf_status ledger_event_read(struct ledger *l, int64_t event, struct event_def **ret_def,
                                 struct clock_row *ret_clock, struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = query_event(l, event, &stmt, &is_row, err);
    if (status != HF_OK)
        return status;
    if (!is_row) {
        *ret_def = NULL;
        return HF_OK;
    }
    struct event_def *def = event_from_row(stmt);
    stmt->driver->finish(stmt);
    struct clock_row clock = {.event = event};
    if ((status = read_layout(l, event, def, err)) != HF_OK ||
        (status = ledger_clocks_read(l, &clock, 1, err)) != HF_OK) {
        event_def_free(def);
        return status;
    }
    *ret_def = def;
    *ret_clock = clock;
    return HF_OK;
}

/* Reads the places of an area that are blocked.  Returns false if the column is damaged. */
static bool read_blocks(struct db_stmt *stmt, int column, struct area_blocks *ret)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    return text && block_list_parse(text, len, ret);
}

enum hf_status ledger_event_state(struct ledger *l, int64_t event, enum event_status *ret_status,
                                  void (*area)(void *ctx, uint32_t index,
                                               const struct area_row *row),
                                  void *ctx, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row, is_sound = true;
    enum hf_status status = query_event(l, event, &stmt, &is_row, err);
    if (status != HF_OK)
        return status;
    if (!is_row)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "there is no event %lld", (long long)event);
    *ret_status = (enum event_status)db_column_int(stmt, AT_e_status);
    stmt->driver->finish(stmt);
    status = ledger_query(l, ST_AREAS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    for (uint32_t i = 0; (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row; i++) {
        struct area_blocks blocks = {0};
        const struct area_row row = {
            .held = db_column_int(stmt, 3), .booked = db_column_int(stmt, 4), .blocks = &blocks};
        if (read_blocks(stmt, 5, &blocks))
            area(ctx, i, &row);
        else
            is_sound = false;
        vec_close(&blocks.list);
    }
    if (status == HF_OK && !is_sound)
        return hf_err_set(err, HF_INTERNAL, "event %lld has a damaged area", (long long)event);
    return status;
}

/* Reads a column of prices, of categories, sections or areas. */
static enum hf_status read_prices(struct ledger *l, enum statement which, int column, int64_t event,
                                  struct event_terms *terms, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        *vec_push(&terms->prices) = db_column_int(stmt, column);
    return status;
}

enum hf_status ledger_terms_read(struct ledger *l, int64_t event, struct event_terms *ret,
                                 struct hf_err *err)
{
    struct event_terms terms = {0};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = query_event(l, event, &stmt, &is_row, err);
    if (status != HF_OK)
        return status;
    if (!is_row)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "there is no event %lld", (long long)event);
    terms_from_row(stmt, &terms);
    stmt->driver->finish(stmt);
    if ((status = read_prices(l, ST_CATEGORIES_READ, 1, event, &terms, err)) == HF_OK &&
        !terms.prices.n)
        status = read_prices(l, ST_SECTION_PRICES_READ, 0, event, &terms, err);
    if (status != HF_OK ||
        (status = read_prices(l, ST_AREAS_READ, 1, event, &terms, err)) != HF_OK) {
        event_terms_close(&terms);
        return status;
    }
    *ret = terms;
    return HF_OK;
}

enum hf_status ledger_seats_read(struct ledger *l, int64_t event, uint32_t first, uint32_t last,
                                 void (*seat)(void *ctx, uint32_t index,
                                              const struct seat_row *row),
                                 void *ctx, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(SEAT_KEY(event, first)), db_int(SEAT_KEY(event, last))};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_SEATS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        const struct seat_row row = {.status = (enum seat_status)db_column_int(stmt, 1),
                                     .hold = db_column_int(stmt, 2),
                                     .channel = (uint32_t)db_column_int(stmt, 3)};
        seat(ctx, SEAT_INDEX(db_column_int(stmt, 0)), &row);
    }
    return status;
}

/* ---- lists of events ---- */

#define EVENT_NO_START INT64_C(253402300800000) /* after all starts; EVENTS_DATED has it, too */

enum hf_status ledger_event_keys(struct ledger *l, int64_t before, size_t limit, int64_t *ret_keys,
                                 size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(before ? before : INT64_MAX), db_int((int64_t)limit)};
    return ledger_read_ints(l, ST_EVENT_KEYS, args, limit, ret_keys, ret_n, err);
}

/* Appends the events that the statement selects. */
static enum hf_status read_summaries(struct ledger *l, enum statement which,
                                     const struct db_value *args, struct event_summary *ret,
                                     size_t *n, struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    if (status != HF_OK)
        return status;
    for (; (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row; (*n)++)
        ret[*n] = (struct event_summary){.def = event_from_row(stmt),
                                         .counts.seq = db_column_int(stmt, EVENT_COLUMNS_N)};
    return status;
}

/* Reads where the event stands among those to come: *ret_start is 0 if it has no date, and
 * EVENT_NO_START if it has only one that its sales end at. */
static enum hf_status read_place(struct ledger *l, int64_t event, int64_t *ret_start, bool *ret_row,
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = query_event(l, event, &stmt, ret_row, err);
    if (status != HF_OK || !*ret_row)
        return status;
    struct event_def *def = event_from_row(stmt);
    stmt->driver->finish(stmt);
    const struct event_terms *terms = &def->terms;
    *ret_start =
        !terms->starts_at.ms && terms->sales_close_at ? EVENT_NO_START : terms->starts_at.ms;
    event_def_free(def);
    return HF_OK;
}

static enum hf_status list_upcoming(struct ledger *l, const struct events_query *query,
                                    struct event_summary *ret, size_t *n, struct hf_err *err)
{
    int64_t start = 0;
    bool is_row = false;
    enum hf_status status = query->last ? read_place(l, query->last, &start, &is_row, err) : HF_OK;
    if (status != HF_OK || (query->last && !is_row))
        return status;
    bool dates_are_over = query->last && !start;
    if (!dates_are_over) {
        const struct db_value args[] = {db_int(query->now), db_int(start), db_int(query->last),
                                        db_int((int64_t)query->limit)};
        if ((status = read_summaries(l, ST_EVENTS_DATED, args, ret, n, err)) != HF_OK)
            return status;
    }
    if (*n == query->limit)
        return HF_OK;
    const struct db_value args[] = {db_int(dates_are_over ? query->last : INT64_MAX),
                                    db_int((int64_t)(query->limit - *n))};
    return read_summaries(l, ST_EVENTS_UNDATED, args, ret, n, err);
}

enum hf_status ledger_events_list(struct ledger *l, const struct events_query *query,
                                  struct event_summary *ret, size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(query->last ? query->last : INT64_MAX),
                                    db_int((int64_t)query->limit)};
    size_t n = 0;
    enum hf_status status = query->upcoming ? list_upcoming(l, query, ret, &n, err)
                                            : read_summaries(l, ST_EVENTS_LIST, args, ret, &n, err);
    while (status != HF_OK && n > 0)
        event_def_free(ret[--n].def);
    if (status == HF_OK)
        *ret_n = n;
    return status;
}

/* Adds up the seats of all layouts.  A layout that is damaged is not counted further. */
static enum hf_status count_layouts(struct ledger *l, int64_t event, int64_t *ret,
                                    struct hf_err *err)
{
    const struct db_value args[] = {db_int(event)};
    struct db_stmt *stmt;
    struct layout_run run;
    bool is_row;
    size_t len, n;
    enum hf_status status = ledger_read_ints(l, ST_ROWS_COUNT, args, 1, ret, &n, err);
    if (status != HF_OK || (status = ledger_query(l, ST_SECTIONS_READ, args, &stmt, err)) != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        const char *at = db_column_data(stmt, 4, &len), *end = at ? at + len : NULL;
        while (layout_next(&at, end, &run))
            *ret += (int64_t)run.rows * run.seats;
    }
    return status;
}

static enum hf_status count_seats(struct ledger *l, int64_t event, struct event_counts *counts,
                                  struct hf_err *err)
{
    const struct db_value args[] = {db_int(SEAT_KEY(event, 0)),
                                    db_int(SEAT_KEY(event, UINT32_MAX))};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_SEATS_COUNT, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        bool booked = db_column_int(stmt, 0) == SEAT_BOOKED;
        *(booked ? &counts->booked : &counts->blocked) += db_column_int(stmt, 1);
    }
    return status;
}

/* The seats of live holds, and the keys of those that may have been blocked for the hold's channel.
 */
struct held_seats {
    int64_t n;
    VEC(int64_t) of_channels;
};

static void add_held(void *ctx, const struct hold_row *row)
{
    struct held_seats *held = ctx;
    held->n += row->n_seats;
    for (uint32_t i = 0; row->channel && i < row->n_seats; i++)
        *vec_push(&held->of_channels) = SEAT_KEY(HOLD_EVENT(row->id.key), row->seats[i]);
}

/* A seat that was blocked for a channel keeps its row while it is held; see seat_row_status. */
static enum hf_status count_rows(struct ledger *l, const int64_t *seats, size_t n, int64_t *ret,
                                 struct hf_err *err)
{
    enum hf_status status = HF_OK;
    struct db_stmt *stmt;
    bool is_row;
    for (size_t at = 0; status == HF_OK && at < n; at += LEDGER_VISIT_CHUNK) {
        size_t len = n - at < LEDGER_VISIT_CHUNK ? n - at : LEDGER_VISIT_CHUNK;
        vec_clear(&l->args);
        for (size_t i = 0; i < len; i++)
            ledger_arg_int(l, seats[at + i]);
        if ((status = ledger_stmt(l, ST_SEATS_STORED, &stmt, err)) == HF_OK)
            status = stmt->driver->query_many(stmt, l->args.v, len, err);
        while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
            ++*ret;
    }
    return status;
}

static enum hf_status count_held(struct ledger *l, int64_t event, struct event_counts *counts,
                                 struct hf_err *err)
{
    struct held_seats held = {0};
    int64_t stored = 0;
    enum hf_status status = ledger_holds_active(l, event, add_held, &held, err);
    if (status == HF_OK)
        status = count_rows(l, held.of_channels.v, held.of_channels.n, &stored, err);
    counts->held += held.n;
    counts->blocked -= stored;
    vec_close(&held.of_channels);
    return status;
}

static enum hf_status count_areas(struct ledger *l, int64_t event, struct event_counts *counts,
                                  int64_t *capacity, struct hf_err *err)
{
    const struct db_value args[] = {db_int(event)};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_AREAS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        *capacity += db_column_int(stmt, 2);
        counts->held += db_column_int(stmt, 3);
        counts->booked += db_column_int(stmt, 4);
        struct area_blocks blocks = {0};
        if (read_blocks(stmt, 5, &blocks))
            for (size_t i = 0; i < blocks.list.n; i++)
                counts->blocked += blocks.list.v[i].places;
        vec_close(&blocks.list);
    }
    return status;
}

enum hf_status ledger_event_count(struct ledger *l, int64_t event, struct event_counts *ret,
                                  struct hf_err *err)
{
    struct event_counts counts = {.seq = ret->seq};
    int64_t capacity = 0;
    enum hf_status status;
    if ((status = count_layouts(l, event, &capacity, err)) != HF_OK ||
        (status = count_seats(l, event, &counts, err)) != HF_OK ||
        (status = count_held(l, event, &counts, err)) != HF_OK ||
        (status = count_areas(l, event, &counts, &capacity, err)) != HF_OK)
        return status;
    counts.available = capacity - counts.held - counts.booked - counts.blocked;
    *ret = counts;
    return HF_OK;
}
