/* See desk.h: connections, attempts, PostgreSQL and Redis.  desk_sqlite.c has SQLite. */
#include "lab/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lab/desk_sqlite.h"

/* ---- connections ---- */

static bool is_unix(const char *url) { return strncmp(url, "unix:", 5) == 0 && url[5]; }

static bool split_redis_url(const char *url, char ret_host[256], int *ret_port)
{
    int len = 0;
    return sscanf(url, "redis://%255[^:/@]:%d%n", ret_host, ret_port, &len) == 2 && !url[len] &&
           *ret_port > 0 && *ret_port < 65536;
}

bool desk_is_redis_url(const char *url)
{
    char host[256];
    int port;
    return is_unix(url) || split_redis_url(url, host, &port);
}

static redisContext *open_redis(const char *url)
{
    const struct timeval timeout = {.tv_sec = DESK_TIMEOUT_S};
    redisContext *redis = NULL;
    char host[256];
    int port;
    if (is_unix(url))
        redis = redisConnectUnixWithTimeout(url + 5, timeout);
    else if (split_redis_url(url, host, &port))
        redis = redisConnectWithTimeout(host, port, timeout);
    if (redis && !redis->err)
        (void)redisSetTimeout(redis, timeout);
    return redis;
}

static bool connect_postgres(struct desk *d)
{
    if (d->pg && PQstatus(d->pg) != CONNECTION_OK) {
        PQfinish(d->pg);
        d->pg = NULL;
        memset(d->statements, 0, sizeof d->statements);
    }
    if (!d->pg)
        d->pg = PQconnectdb(d->settings.postgres);
    return d->pg && PQstatus(d->pg) == CONNECTION_OK;
}

static bool connect_redis(struct desk *d)
{
    if (d->redis && d->redis->err) {
        redisFree(d->redis);
        d->redis = NULL;
    }
    if (!d->redis)
        d->redis = open_redis(d->settings.redis);
    return d->redis && !d->redis->err;
}

/* Connects to what the strategy needs and is not connected to. */
static bool connect_all(struct desk *d, struct hf_err *err)
{
    if ((d->strategy->needs & STRATEGY_NEEDS_POSTGRES) && !connect_postgres(d)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "PostgreSQL: %s",
                         d->pg ? PQerrorMessage(d->pg) : "out of memory");
        return false;
    }
    if ((d->strategy->needs & STRATEGY_NEEDS_REDIS) && !connect_redis(d)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "Redis: %s",
                         d->redis ? d->redis->errstr : "not redis://HOST:PORT or unix:PATH");
        return false;
    }
    if ((d->strategy->needs & STRATEGY_NEEDS_SQLITE) && !d->sqlite)
        return desk_sqlite_open(d, err);
    if (d->strategy->needs & STRATEGY_NEEDS_SERVER)
        return load_client_connect(&d->server, d->settings.server, DESK_TIMEOUT_S, err);
    return true;
}

bool desk_open(const struct strategy *strategy, const struct strategy_settings *settings,
               struct desk **ret, struct hf_err *err)
{
    struct desk *d = hf_alloc(sizeof *d);
    d->strategy = strategy;
    d->settings = *settings;
    if (settings->seed)
        random_init_seeded(&d->random, settings->seed);
    else
        random_init_system(&d->random);
    snprintf(d->hold_s, sizeof d->hold_s, "%d", settings->hold_s);
    if (!connect_all(d, err)) {
        desk_close(d);
        return false;
    }
    *ret = d;
    return true;
}

void desk_close(struct desk *d)
{
    if (!d)
        return;
    PQfinish(d->pg);
    if (d->redis)
        redisFree(d->redis);
    desk_sqlite_close(d);
    load_client_close(&d->server);
    buf_close(&d->ids);
    free(d);
}

/* ---- an attempt ---- */

void desk_fail(struct desk *d, const char *what, const char *why)
{
    if (!d->failed)
        snprintf(d->outcome->why, sizeof d->outcome->why, "%s: %s", what, why);
    d->failed = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Strings in PostgreSQL's arrays are escaped as in JSON, except for control characters. */
static void write_ids(struct desk *d, size_t n)
{
    const char *around = d->sqlite ? "[]" : "{}";
    d->ids.len = 0;
    for (size_t i = 0; i < n; i++) {
        buf_char(&d->ids, i ? ',' : around[0]);
        buf_json(&d->ids, d->seats[i], strlen(d->seats[i]));
    }
    buf_put(&d->ids, around + 1, 2);
}

bool desk_begin(struct desk *d, const struct strategy_want *want, struct strategy_outcome *ret)
{
    struct hf_err err;
    *ret = (struct strategy_outcome){0};
    d->outcome = ret;
    d->failed = false;
    d->state[0] = '\0';
    memcpy(d->seats, want->seats, want->n_seats * sizeof *d->seats);
    qsort(d->seats, want->n_seats, sizeof *d->seats, by_name);
    bool good = connect_all(d, &err);
    write_ids(d, want->n_seats);
    if (good)
        return true;
    desk_fail(d, "cannot connect", err.msg);
    return false;
}

void desk_end(struct desk *d)
{
    PGTransactionStatusType status = d->pg ? PQtransactionStatus(d->pg) : PQTRANS_IDLE;
    if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR ||
        (d->sqlite && !sqlite3_get_autocommit(d->sqlite)))
        desk_do(d, "ROLLBACK");
}

/* ---- SQL ---- */

/* Returns `result`, or records its failure, clears it and returns NULL. */
static PGresult *check_result(struct desk *d, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    d->state[0] = '\0';
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        snprintf(d->state, sizeof d->state, "%s", state ? state : "");
        desk_fail(d, "PostgreSQL", PQerrorMessage(d->pg));
        PQclear(result);
        return NULL;
    }
    if (PQtransactionStatus(d->pg) == PQTRANS_IDLE && strcmp(PQcmdStatus(result), "ROLLBACK") != 0)
        d->outcome->commits++;
    return result;
}

bool desk_do(struct desk *d, const char *sql)
{
    d->outcome->sql_trips++;
    if (d->sqlite)
        return desk_sqlite_do(d, sql);
    PGresult *result = check_result(d, PQexec(d->pg, sql));
    PQclear(result);
    return result != NULL;
}

static bool prepare(struct desk *d, const char *sql, char name[16])
{
    int i = 0;
    while (d->statements[i] && d->statements[i] != sql)
        hf_check(++i < DESK_STATEMENTS_MAX);
    snprintf(name, 16, "s%d", i);
    if (d->statements[i])
        return true;
    PGresult *result = PQprepare(d->pg, name, sql, 0, NULL);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (good)
        d->statements[i] = sql;
    else
        desk_fail(d, "PostgreSQL", PQerrorMessage(d->pg));
    return good;
}

int desk_parameters(va_list args, const char *ret[DESK_PARAMETERS_MAX])
{
    int n = 0;
    for (const char *value; (value = va_arg(args, const char *));) {
        hf_check(n < DESK_PARAMETERS_MAX);
        ret[n++] = value;
    }
    return n;
}

static PGresult *execute(struct desk *d, const char *sql, va_list args)
{
    const char *values[DESK_PARAMETERS_MAX];
    char name[16];
    int n = desk_parameters(args, values);
    if (!prepare(d, sql, name))
        return NULL;
    d->outcome->sql_trips++;
    return check_result(d, PQexecPrepared(d->pg, name, n, values, NULL, NULL, 0));
}

PGresult *desk_sql(struct desk *d, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = execute(d, sql, args);
    va_end(args);
    return result;
}

long desk_change(struct desk *d, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = d->sqlite ? NULL : execute(d, sql, args);
    long n = d->sqlite ? desk_sqlite_change(d, sql, args) : -1;
    va_end(args);
    if (result)
        n = strtol(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return n;
}

bool desk_all_available(struct desk *d, size_t n_seats, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = d->sqlite ? NULL : execute(d, sql, args);
    bool all = d->sqlite ? desk_sqlite_all_available(d, n_seats, sql, args)
                         : result && (size_t)PQntuples(result) == n_seats;
    va_end(args);
    for (int i = 0; result && all && i < PQntuples(result); i++)
        all = strcmp(PQgetvalue(result, i, 0), "AVAILABLE") == 0;
    PQclear(result);
    return all;
}

bool desk_refused(struct desk *d, const char *state)
{
    if (!d->failed || strcmp(d->state, state) != 0)
        return false;
    d->failed = false;
    d->outcome->why[0] = '\0';
    return true;
}

/* ---- Redis ---- */

static redisReply *command(struct desk *d, const char *format, va_list args)
{
    d->outcome->redis_trips++;
    redisReply *reply = redisvCommand(d->redis, format, args);
    if (!reply) {
        desk_fail(d, "Redis", d->redis->errstr);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        desk_fail(d, "Redis", reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

redisReply *desk_redis(struct desk *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(d, format, args);
    va_end(args);
    return reply;
}

bool desk_redis_set(struct desk *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(d, format, args);
    va_end(args);
    bool set = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return set;
}

long long desk_redis_number(struct desk *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(d, format, args);
    va_end(args);
    long long number = reply ? reply->integer : 0;
    freeReplyObject(reply);
    return number;
}

/* ---- time ---- */

void desk_window(struct desk *d)
{
    if (d->settings.window)
        d->settings.window(d->settings.window_ctx);
}

void desk_retry(struct desk *d, int ms)
{
    d->outcome->retries++;
    int64_t us = (int64_t)ms * 750;
    us += (int64_t)random_below(&d->random, (uint64_t)ms * 500 + 1);
    wait_sleep_us(us);
}
