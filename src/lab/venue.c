/* See venue.h.  On PostgreSQL, the strategies and our holdfastd get a schema each, by search_path
 * in their URLs.  Both are dropped at the end if the user named the server.  A Redis that the user
 * named must be empty: the gate's keys contain numbers of events, and another Holdfast would use
 * the same ones. */
#include "lab/venue.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "holdfast.h"
#include "lab/runner.h"
#include "lab/stage.h"
#include "net/pg_url.h"

static bool is_sqlite(const char *url) { return url && strncmp(url, "sqlite:", 7) == 0; }

/* ---- PostgreSQL ---- */

/* Runs one statement and copies its first value, or "" if it returns none. */
static bool ask_postgres(const char *url, const char *sql, char ret[64], struct hf_err *err)
{
    PGconn *pg = PQconnectdb(url);
    bool connected = PQstatus(pg) == CONNECTION_OK;
    PGresult *result = connected ? PQexec(pg, sql) : NULL;
    const char *why = PQerrorMessage(pg);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    int why_len = (int)strcspn(why, "\n");
    if (good)
        (void)snprintf(ret, 64, "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    else
        (void)hf_err_set(err, HF_UNAVAILABLE, "PostgreSQL: %.*s", why_len, why);
    PQclear(result);
    PQfinish(pg);
    return good;
}

static bool open_schema(struct lab_venue *v, const char *suffix, char ret_url[VENUE_URL_SIZE],
                        struct hf_err *err)
{
    char sql[128], ignored[64];
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s_%s", v->schema, suffix);
    (void)snprintf(ret_url, VENUE_URL_SIZE, "%s%soptions=-csearch_path%%3D%s_%s", v->postgres,
                   strchr(v->postgres, '?') ? "&" : "?", v->schema, suffix);
    return ask_postgres(v->postgres, sql, ignored, err);
}

static void drop_schemas(const struct lab_venue *v)
{
    char sql[192], ignored[64];
    struct hf_err err;
    (void)snprintf(sql, sizeof sql,
                   "SET client_min_messages = warning;"
                   "DROP SCHEMA IF EXISTS %s_field, %s_holdfastd CASCADE",
                   v->schema, v->schema);
    (void)ask_postgres(v->postgres, sql, ignored, &err);
}

static bool open_postgres(struct lab_venue *v, const char *url, struct hf_err *err)
{
    struct random random;
    random_init_system(&random);
    v->postgres = url;
    v->on_postgres = true;
    (void)snprintf(v->schema, sizeof v->schema, "holdfast_lab_%08x", (unsigned)random_u64(&random));
    v->settings.postgres = v->field_url;
    return ask_postgres(url, "SHOW server_version", v->versions.postgresql, err) &&
           open_schema(v, "field", v->field_url, err) &&
           open_schema(v, "holdfastd", v->holdfastd_url, err);
}

/* ---- Redis ---- */

static const struct strategy redis_only = {.needs = STRATEGY_NEEDS_REDIS};

static enum hf_status check_redis(struct lab_venue *v, const char *url, bool must_be_empty,
                                  struct hf_err *err)
{
    struct runner *r = NULL;
    struct strategy_outcome outcome = {0};
    v->settings.redis = url;
    if (!runner_open(&redis_only, &v->settings, &r, err))
        return err->code;
    r->outcome = &outcome;
    long long keys = runner_redis_number(r, "DBSIZE");
    redisReply *info = runner_redis(r, "INFO server");
    const char *version = info && info->str ? strstr(info->str, "redis_version:") : NULL;
    if (version)
        (void)sscanf(version, "redis_version:%31[^\r]", v->versions.redis);
    freeReplyObject(info);
    enum hf_status status = HF_OK;
    if (runner_failed(r))
        status = hf_err_set(err, HF_UNAVAILABLE, "%s", outcome.why);
    else if (keys && must_be_empty)
        status = hf_err_set(err, HF_INVALID_REQUEST,
                            "--gate: it is not empty (DBSIZE %lld), and the lab would delete keys",
                            keys);
    runner_close(r);
    return status;
}

/* Deletes the keys of the strategies and of the gate. */
static void clean_redis(const struct lab_venue *v)
{
    static const char *const patterns[] = {"seat:*", "area:*", "lock:*", "stock:*"};
    struct runner *r = NULL;
    struct strategy_outcome outcome = {0};
    struct hf_err err;
    if (!runner_open(&redis_only, &v->settings, &r, &err))
        return;
    r->outcome = &outcome;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        (void)runner_redis_number(r, "EVAL %s 0 %s",
                                  "local keys = redis.call('KEYS', ARGV[1])"
                                  " for _, key in ipairs(keys) do redis.call('DEL', key) end"
                                  " return #keys",
                                  patterns[i]);
    runner_close(r);
}

/* ---- SQLite ---- */

static enum hf_status open_sqlite(struct lab_venue *v, const char *ledger, struct hf_err *err)
{
    if (ledger)
        (void)snprintf(v->sqlite, sizeof v->sqlite, "%s", ledger + strlen("sqlite:"));
    else
        (void)snprintf(v->sqlite, sizeof v->sqlite, "%s/seats.db", v->servers.dir);
    if (access(v->sqlite, F_OK) == 0)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--ledger: %s exists; the lab makes a file of its own", v->sqlite);
    v->named_sqlite = ledger != NULL;
    v->settings.sqlite = v->sqlite;
    (void)snprintf(v->versions.sqlite, sizeof v->versions.sqlite, "%s", sqlite3_libversion());
    (void)snprintf(v->holdfastd_url, sizeof v->holdfastd_url, "sqlite:%.700s-holdfastd", v->sqlite);
    return HF_OK;
}

static void remove_sqlite(const struct lab_venue *v)
{
    static const char *const endings[] = {
        "", "-wal", "-shm", "-holdfastd", "-holdfastd-wal", "-holdfastd-shm", "-holdfastd.lock"};
    char path[VENUE_URL_SIZE + 16];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        (void)snprintf(path, sizeof path, "%s%s", v->sqlite, endings[i]);
        (void)unlink(path);
    }
}

/* ---- the venue ---- */

static enum hf_status check_urls(const char *ledger, const char *gate, struct hf_err *err)
{
    bool postgres = ledger && (strncmp(ledger, "postgres://", 11) == 0 ||
                               strncmp(ledger, "postgresql://", 13) == 0);
    if (ledger && !postgres && (!is_sqlite(ledger) || !ledger[7]))
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--ledger: the URL %s: it is sqlite:PATH or " PG_URL_FORM,
                          *ledger ? "begins with neither sqlite: nor postgres://" : "is empty");
    PQconninfoOption *parsed =
        postgres && !pg_url_fault(ledger) ? PQconninfoParse(ledger, NULL) : NULL;
    if (postgres && !parsed)
        return hf_err_set(err, HF_INVALID_REQUEST, "--ledger: %s; a URL looks like " PG_URL_FORM,
                          pg_url_fault(ledger) ? pg_url_fault(ledger)
                                               : "a parameter after the ? is none of libpq's");
    PQconninfoFree(parsed);
    if ((ledger && strlen(ledger) > VENUE_URL_SIZE - 128) || (gate && strlen(gate) > 512))
        return hf_err_set(err, HF_INVALID_REQUEST, "a URL is too long");
    if (gate && !runner_is_redis_url(gate))
        return hf_err_set(err, HF_INVALID_REQUEST, "--gate: not redis://HOST:PORT or unix:PATH");
    if (gate && is_sqlite(ledger))
        return hf_err_set(err, HF_INVALID_REQUEST, "--gate: SQLite has no use for a gate");
    return HF_OK;
}

static enum hf_status open_gate(struct lab_venue *v, const char *gate,
                                bool (*say)(void *ctx, const char *what), void *ctx,
                                struct hf_err *err)
{
    if (gate) {
        v->named_gate = true;
        enum hf_status status = check_redis(v, gate, true, err);
        v->named_gate = status == HF_OK;
        return status;
    }
    if (v->named_postgres || !servers_have_redis()) {
        (void)snprintf(v->note, sizeof v->note,
                       v->named_postgres ? "without --gate there is no Redis"
                                         : "redis-server is not installed");
        return HF_OK;
    }
    if (!say(ctx, "starting Redis"))
        return hf_err_set(err, HF_DRAINING, "stopped");
    return servers_start_redis(&v->servers, err) ? check_redis(v, v->servers.redis.url, false, err)
                                                 : err->code;
}

enum hf_status venue_open(struct lab_venue *v, const char *ledger, const char *gate,
                          bool (*say)(void *ctx, const char *what), void *ctx, struct hf_err *err)
{
    *v = (struct lab_venue){.settings = {STRATEGY_SETTINGS_USUAL}};
    (void)snprintf(v->versions.holdfast, sizeof v->versions.holdfast, "%s", HF_VERSION_TEXT);
    enum hf_status status = check_urls(ledger, gate, err);
    if (status != HF_OK || !servers_open(&v->servers, err))
        return err->code;
    bool missing = !ledger && !servers_have_postgres();
    if (missing && gate)
        return hf_err_set(err, HF_INVALID_REQUEST, "--gate: PostgreSQL is not installed");
    if (missing)
        (void)snprintf(v->note, sizeof v->note,
                       "PostgreSQL is not installed: the race is on SQLite, without Redis");
    if (missing || is_sqlite(ledger)) {
        status = open_sqlite(v, ledger, err);
        return status == HF_OK && !stage_build(&v->settings, err) ? err->code : status;
    }
    v->named_postgres = ledger != NULL;
    if (!ledger && !say(ctx, "starting PostgreSQL"))
        return hf_err_set(err, HF_DRAINING, "stopped");
    if ((!ledger && !servers_start_postgres(&v->servers, err)) ||
        !open_postgres(v, ledger ? ledger : v->servers.postgres.url, err) ||
        !stage_build(&v->settings, err))
        return err->code;
    return open_gate(v, gate, say, ctx, err);
}

enum hf_status venue_start_holdfastd(struct lab_venue *v, struct hf_err *err)
{
    if (!servers_start_holdfastd(&v->servers, v->holdfastd_url, v->settings.redis, err))
        return err->code;
    v->settings.server = v->servers.holdfastd.url;
    return HF_OK;
}

void venue_close(struct lab_venue *v)
{
    servers_stop(&v->servers.holdfastd);
    if (v->named_gate)
        clean_redis(v);
    if (v->named_postgres && v->schema[0])
        drop_schemas(v);
    if (v->named_sqlite)
        remove_sqlite(v);
    servers_close(&v->servers);
}
