/* See runner.h: connections, attempts, PostgreSQL and Redis.  runner_sqlite.c has SQLite. */
#include "lab/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lab/runner_sqlite.h"

/* ---- connections ---- */

static bool is_unix(const char *url) { return strncmp(url, "unix:", 5) == 0 && url[5]; }

static bool split_redis_url(const char *url, char ret_host[256], int *ret_port)
{
    int len = 0;
    return sscanf(url, "redis://%255[^:/@]:%d%n", ret_host, ret_port, &len) == 2 && !url[len] &&
           *ret_port > 0 && *ret_port < 65536;
}

bool runner_is_redis_url(const char *url)
{
    char host[256];
    int port;
    return is_unix(url) || split_redis_url(url, host, &port);
}

static redisContext *open_redis(const char *url)
{
    const struct timeval timeout = {.tv_sec = RUNNER_TIMEOUT_S};
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

static bool connect_postgres(struct runner *r)
{
    if (r->pg && PQstatus(r->pg) != CONNECTION_OK) {
        PQfinish(r->pg);
        r->pg = NULL;
        memset(r->statements, 0, sizeof r->statements);
    }
    if (!r->pg)
        r->pg = PQconnectdb(r->settings.postgres);
    return r->pg && PQstatus(r->pg) == CONNECTION_OK;
}

static bool connect_redis(struct runner *r)
{
    if (r->redis && r->redis->err) {
        redisFree(r->redis);
        r->redis = NULL;
    }
    if (!r->redis)
        r->redis = open_redis(r->settings.redis);
    return r->redis && !r->redis->err;
}

/* Connects to what the strategy needs and is not connected to. */
static bool connect_all(struct runner *r, struct hf_err *err)
{
    if ((r->strategy->needs & STRATEGY_NEEDS_POSTGRES) && !connect_postgres(r)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "PostgreSQL: %s",
                         r->pg ? PQerrorMessage(r->pg) : "out of memory");
        return false;
    }
    if ((r->strategy->needs & STRATEGY_NEEDS_REDIS) && !connect_redis(r)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "Redis: %s",
                         r->redis ? r->redis->errstr : "not redis://HOST:PORT or unix:PATH");
        return false;
    }
    if ((r->strategy->needs & STRATEGY_NEEDS_SQLITE) && !r->sqlite)
        return runner_sqlite_open(r, err);
    if (r->strategy->needs & STRATEGY_NEEDS_SERVER)
        return load_client_connect(&r->server, r->settings.server, RUNNER_TIMEOUT_S, err);
    return true;
}

bool runner_open(const struct strategy *strategy, const struct strategy_settings *settings,
                 struct runner **ret, struct hf_err *err)
{
    struct runner *r = hf_alloc(sizeof *r);
    r->strategy = strategy;
    r->settings = *settings;
    if (settings->seed)
        random_init_seeded(&r->random, settings->seed);
    else
        random_init_system(&r->random);
    snprintf(r->hold_s, sizeof r->hold_s, "%d", settings->hold_s);
    if (!connect_all(r, err)) {
        runner_close(r);
        return false;
    }
    *ret = r;
    return true;
}

void runner_close(struct runner *r)
{
    if (!r)
        return;
    PQfinish(r->pg);
    if (r->redis)
        redisFree(r->redis);
    runner_sqlite_close(r);
    load_client_close(&r->server);
    buf_close(&r->ids);
    free(r);
}

/* ---- an attempt ---- */

void runner_fail(struct runner *r, const char *what, const char *why)
{
    if (!r->failed)
        snprintf(r->outcome->why, sizeof r->outcome->why, "%s: %s", what, why);
    r->failed = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Strings in PostgreSQL's arrays are escaped as in JSON, except for control characters. */
static void write_ids(struct runner *r, size_t n)
{
    const char *around = r->sqlite ? "[]" : "{}";
    r->ids.len = 0;
    for (size_t i = 0; i < n; i++) {
        buf_char(&r->ids, i ? ',' : around[0]);
        buf_json(&r->ids, r->seats[i], strlen(r->seats[i]));
    }
    buf_put(&r->ids, around + 1, 2);
}

bool runner_begin(struct runner *r, const struct strategy_want *want, struct strategy_outcome *ret)
{
    struct hf_err err;
    *ret = (struct strategy_outcome){0};
    r->outcome = ret;
    r->failed = false;
    r->state[0] = '\0';
    memcpy(r->seats, want->seats, want->n_seats * sizeof *r->seats);
    qsort(r->seats, want->n_seats, sizeof *r->seats, by_name);
    bool good = connect_all(r, &err);
    write_ids(r, want->n_seats);
    if (good)
        return true;
    runner_fail(r, "cannot connect", err.msg);
    return false;
}

void runner_end(struct runner *r)
{
    PGTransactionStatusType status = r->pg ? PQtransactionStatus(r->pg) : PQTRANS_IDLE;
    if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR ||
        (r->sqlite && !sqlite3_get_autocommit(r->sqlite)))
        runner_do(r, "ROLLBACK");
}

/* ---- SQL ---- */

/* Returns `result`, or records its failure, clears it and returns NULL. */
static PGresult *check_result(struct runner *r, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    r->state[0] = '\0';
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        snprintf(r->state, sizeof r->state, "%s", state ? state : "");
        runner_fail(r, "PostgreSQL", PQerrorMessage(r->pg));
        PQclear(result);
        return NULL;
    }
    if (PQtransactionStatus(r->pg) == PQTRANS_IDLE && strcmp(PQcmdStatus(result), "ROLLBACK") != 0)
        r->outcome->commits++;
    return result;
}

bool runner_do(struct runner *r, const char *sql)
{
    r->outcome->sql_trips++;
    if (r->sqlite)
        return runner_sqlite_do(r, sql);
    PGresult *result = check_result(r, PQexec(r->pg, sql));
    PQclear(result);
    return result != NULL;
}

static bool prepare(struct runner *r, const char *sql, char name[16])
{
    int i = 0;
    while (r->statements[i] && r->statements[i] != sql)
        hf_check(++i < RUNNER_STATEMENTS_MAX);
    snprintf(name, 16, "s%d", i);
    if (r->statements[i])
        return true;
    PGresult *result = PQprepare(r->pg, name, sql, 0, NULL);
    bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (good)
        r->statements[i] = sql;
    else
        runner_fail(r, "PostgreSQL", PQerrorMessage(r->pg));
    return good;
}

int runner_parameters(va_list args, const char *ret[RUNNER_PARAMETERS_MAX])
{
    int n = 0;
    for (const char *value; (value = va_arg(args, const char *));) {
        hf_check(n < RUNNER_PARAMETERS_MAX);
        ret[n++] = value;
    }
    return n;
}

static PGresult *execute(struct runner *r, const char *sql, va_list args)
{
    const char *values[RUNNER_PARAMETERS_MAX];
    char name[16];
    int n = runner_parameters(args, values);
    if (!prepare(r, sql, name))
        return NULL;
    r->outcome->sql_trips++;
    return check_result(r, PQexecPrepared(r->pg, name, n, values, NULL, NULL, 0));
}

PGresult *runner_sql(struct runner *r, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = execute(r, sql, args);
    va_end(args);
    return result;
}

long runner_change(struct runner *r, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = r->sqlite ? NULL : execute(r, sql, args);
    long n = r->sqlite ? runner_sqlite_change(r, sql, args) : -1;
    va_end(args);
    if (result)
        n = strtol(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return n;
}

bool runner_all_available(struct runner *r, size_t n_seats, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    PGresult *result = r->sqlite ? NULL : execute(r, sql, args);
    bool all = r->sqlite ? runner_sqlite_all_available(r, n_seats, sql, args)
                         : result && (size_t)PQntuples(result) == n_seats;
    va_end(args);
    for (int i = 0; result && all && i < PQntuples(result); i++)
        all = strcmp(PQgetvalue(result, i, 0), "AVAILABLE") == 0;
    PQclear(result);
    return all;
}

bool runner_refused(struct runner *r, const char *state)
{
    if (!r->failed || strcmp(r->state, state) != 0)
        return false;
    r->failed = false;
    r->outcome->why[0] = '\0';
    return true;
}

/* ---- Redis ---- */

static redisReply *command(struct runner *r, const char *format, va_list args)
{
    r->outcome->redis_trips++;
    redisReply *reply = redisvCommand(r->redis, format, args);
    if (!reply) {
        runner_fail(r, "Redis", r->redis->errstr);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        runner_fail(r, "Redis", reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

redisReply *runner_redis(struct runner *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(r, format, args);
    va_end(args);
    return reply;
}

bool runner_redis_set(struct runner *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(r, format, args);
    va_end(args);
    bool set = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return set;
}

long long runner_redis_number(struct runner *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(r, format, args);
    va_end(args);
    long long number = reply ? reply->integer : 0;
    freeReplyObject(reply);
    return number;
}

/* ---- time ---- */

void runner_window(struct runner *r)
{
    if (r->settings.window)
        r->settings.window(r->settings.window_ctx);
}

void runner_retry(struct runner *r, int ms)
{
    r->outcome->retries++;
    int64_t us = (int64_t)ms * 750;
    us += (int64_t)random_below(&r->random, (uint64_t)ms * 500 + 1);
    wait_sleep_us(us);
}
