/* See stage.h.  A connection of its own for each call: neither is fast, neither is in a race. */
#include "lab/stage.h"

#include <stdio.h>

#include "lab/desk.h"

static const char schema[] =
    "SET client_min_messages = warning;"
    "DROP TABLE IF EXISTS seats, holds;"
    "CREATE TABLE seats (event text COLLATE \"C\","
    "                    id text COLLATE \"C\","
    "                    status text NOT NULL DEFAULT 'AVAILABLE'," /* HELD, BOOKED */
    "                    holder text,"
    "                    held_until timestamptz,"
    "                    version int NOT NULL DEFAULT 0,"
    "                    PRIMARY KEY (event, id));"
    /* unique.c alone: here a row is a hold, and the key is the protection. */
    "CREATE TABLE holds (event text COLLATE \"C\","
    "                    seat text COLLATE \"C\","
    "                    holder text NOT NULL,"
    "                    held_until timestamptz NOT NULL,"
    "                    PRIMARY KEY (event, seat),"
    "                    FOREIGN KEY (event, seat) REFERENCES seats)";

static const char insert_seats[] =
    "INSERT INTO seats (event, id)"
    " SELECT $1, $2 || '-' || row || '-' || n"
    " FROM unnest($3::text[]) AS row, generate_series(1, $4::int) AS n";

static const struct strategy both = {.needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS};

bool stage_build(const struct strategy_settings *settings, struct hf_err *err)
{
    PGconn *pg = PQconnectdb(settings->postgres);
    PGresult *result = PQexec(pg, schema);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!good)
        (void)hf_err_set(err, HF_LEDGER_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(pg));
    PQclear(result);
    PQfinish(pg);
    return good;
}

bool stage_seats(const struct strategy_settings *settings, const struct stage_section *section,
                 struct hf_err *err)
{
    struct desk *d = NULL;
    struct strategy_outcome outcome = {0};
    struct buf rows = {0};
    char seats_per_row[16];
    if (!desk_open(&both, settings, &d, err))
        return false;
    d->outcome = &outcome;
    for (size_t i = 0; i < section->n_rows; i++)
        buf_printf(&rows, "%s\"%s\"", i ? "," : "{", section->rows[i]);
    buf_put(&rows, "}", sizeof "}");
    snprintf(seats_per_row, sizeof seats_per_row, "%d", section->seats_per_row);
    long n = desk_change(d, insert_seats, section->event, section->section, rows.data,
                         seats_per_row, NULL);
    if (n > 0)
        (void)desk_redis_number(d, "INCRBY stock:%s %ld", section->event, n);
    bool good = !desk_failed(d);
    if (!good)
        (void)hf_err_set(err, HF_LEDGER_UNAVAILABLE, "%s", outcome.why);
    buf_close(&rows);
    desk_close(d);
    return good;
}
