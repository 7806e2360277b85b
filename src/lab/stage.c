/* See stage.h.  Each call opens a connection of its own, since none is part of what is measured. */
#include "lab/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/holdfastd.h"
#include "lab/runner.h"
#include "lab/stage_sqlite.h"

static const char schema[] =
    "SET client_min_messages = warning;"
    "DROP TABLE IF EXISTS seats, holds, inventory, tickets;"
    "CREATE TABLE seats (event text COLLATE \"C\","
    "                    id text COLLATE \"C\","
    "                    status text NOT NULL DEFAULT 'AVAILABLE'," /* HELD, BOOKED */
    "                    holder text,"
    "                    held_until timestamptz,"
    "                    version int NOT NULL DEFAULT 0,"
    /* The order of skip_locked.c: front rows first, each from its middle outwards. */
    "                    rank int NOT NULL DEFAULT 0,"
    "                    PRIMARY KEY (event, id));"
    "CREATE INDEX seats_by_rank ON seats (event, rank, id);"
    /* For unique.c alone: a row is a hold, and the key is the protection. */
    "CREATE TABLE holds (event text COLLATE \"C\","
    "                    seat text COLLATE \"C\","
    "                    holder text NOT NULL,"
    "                    held_until timestamptz NOT NULL,"
    "                    PRIMARY KEY (event, seat),"
    "                    FOREIGN KEY (event, seat) REFERENCES seats);"
    /* For inventory.c alone: one number per event, and what was sold of it. */
    "CREATE TABLE inventory (event text COLLATE \"C\" PRIMARY KEY,"
    "                        places int NOT NULL,"
    "                        version int NOT NULL DEFAULT 0);"
    "CREATE TABLE tickets (event text COLLATE \"C\","
    "                      place int NOT NULL,"
    "                      holder text NOT NULL);"
    "CREATE INDEX tickets_by_event ON tickets (event)";

static const char insert_seats[] =
    "INSERT INTO seats (event, id, rank)"
    " SELECT $1, $2 || '-' || row || '-' || n, i * 100000 + abs(2 * n - $4::int - 1)"
    " FROM unnest($3::text[]) WITH ORDINALITY AS rows (row, i), generate_series(1, $4::int) AS n";

static const char insert_inventory[] =
    "INSERT INTO inventory (event, places) VALUES ($1, $2::int)"
    " ON CONFLICT (event) DO UPDATE SET places = inventory.places + excluded.places";

static const char select_sales[] =
    "SELECT id, holder FROM seats WHERE event = $1 AND holder IS NOT NULL"
    " UNION ALL SELECT seat, holder FROM holds WHERE event = $1"
    " UNION ALL SELECT 'S-A-' || place, holder FROM tickets WHERE event = $1";

static bool build_postgres(const struct strategy_settings *settings, struct hf_err *err)
{
    PGconn *pg = PQconnectdb(settings->postgres);
    PGresult *result = PQexec(pg, schema);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(pg));
    PQclear(result);
    PQfinish(pg);
    return good;
}

bool stage_build(const struct strategy_settings *settings, struct hf_err *err)
{
    return (!settings->postgres || build_postgres(settings, err)) &&
           (!settings->sqlite || stage_sqlite_build(settings->sqlite, err));
}

bool stage_seats(const struct strategy_settings *settings, const struct stage_section *section,
                 struct hf_err *err)
{
    struct runner *r = NULL;
    struct strategy_outcome outcome = {0};
    struct buf rows = {0};
    char seats_per_row[16], added[16];
    unsigned redis = settings->redis ? STRATEGY_NEEDS_REDIS : 0;
    const struct strategy needs = {.needs = STRATEGY_NEEDS_POSTGRES | redis};
    if (!runner_open(&needs, settings, &r, err))
        return false;
    r->outcome = &outcome;
    for (size_t i = 0; i < section->n_rows; i++)
        buf_printf(&rows, "%s\"%s\"", i ? "," : "{", section->rows[i]);
    buf_put(&rows, "}", sizeof "}");
    snprintf(seats_per_row, sizeof seats_per_row, "%d", section->seats_per_row);
    long n = runner_change(r, insert_seats, section->event, section->section, rows.data,
                           seats_per_row, NULL);
    snprintf(added, sizeof added, "%ld", n);
    if (n > 0)
        (void)runner_change(r, insert_inventory, section->event, added, NULL);
    if (n > 0 && redis)
        (void)runner_redis_number(r, "INCRBY stock:%s %ld", section->event, n);
    bool good = !runner_failed(r);
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", outcome.why);
    buf_close(&rows);
    runner_close(r);
    return good;
}

bool stage_event(const struct strategy *strategy, const struct strategy_settings *settings,
                 int seats, char ret_event[STAGE_EVENT_SIZE], struct hf_err *err)
{
    static const char *const row = "A";
    char event[STAGE_EVENT_SIZE];
    struct random random;
    if (strategy->needs & STRATEGY_NEEDS_SERVER)
        return holdfastd_stage(settings->server, seats, ret_event, err);
    random_init_system(&random);
    snprintf(event, sizeof event, "evt%016" PRIx64, random_u64(&random));
    struct stage_section section = {
        .event = event, .section = "S", .rows = &row, .n_rows = 1, .seats_per_row = seats};
    bool good = strategy->needs & STRATEGY_NEEDS_SQLITE
                    ? stage_sqlite_seats(settings->sqlite, event, seats, err)
                    : stage_seats(settings, &section, err);
    if (good)
        snprintf(ret_event, STAGE_EVENT_SIZE, "%s", event);
    return good;
}

/* ---- sales ---- */

void stage_sales_add(struct stage_sales *sales, const char *seat, const char *holder)
{
    if (sales->n == sales->cap) {
        sales->cap = sales->cap ? 2 * sales->cap : 16;
        sales->rows = hf_realloc(sales->rows, sales->cap * sizeof *sales->rows);
    }
    struct stage_sale *row = &sales->rows[sales->n++];
    snprintf(row->seat, sizeof row->seat, "%s", seat);
    snprintf(row->holder, sizeof row->holder, "%s", holder);
}

void stage_sales_close(struct stage_sales *sales)
{
    free(sales->rows);
    *sales = (struct stage_sales){0};
}

static bool postgres_sales(const char *url, const char *event, struct stage_sales *ret,
                           struct hf_err *err)
{
    PGconn *pg = PQconnectdb(url);
    PGresult *rows = PQexecParams(pg, select_sales, 1, NULL, &event, NULL, NULL, 0);
    bool good = PQresultStatus(rows) == PGRES_TUPLES_OK;
    for (int i = 0; good && i < PQntuples(rows); i++)
        stage_sales_add(ret, PQgetvalue(rows, i, 0), PQgetvalue(rows, i, 1));
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(pg));
    PQclear(rows);
    PQfinish(pg);
    return good;
}

bool stage_sales(const struct strategy *strategy, const struct strategy_settings *settings,
                 const char *event, struct stage_sales *ret, struct hf_err *err)
{
    if (strategy->needs & STRATEGY_NEEDS_SERVER)
        return holdfastd_sales(settings->server, event, ret, err);
    if (strategy->needs & STRATEGY_NEEDS_SQLITE)
        return stage_sqlite_sales(settings->sqlite, event, ret, err);
    return postgres_sales(settings->postgres, event, ret, err);
}
