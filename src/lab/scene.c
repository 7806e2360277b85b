/* See scene.h: the stage, the steps and the judge.  scene_lock.c has the locks. */
#include "lab/scene_client.h"
#include "lab/scene_sqlite.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/wait.h"

#define WAIT_MS_MAX 10000 /* for what happens by itself, such as the expiry of a lock */
#define POLL_MS 5

static const char stage_postgres[] = "SET client_min_messages = warning;"
                                     "DROP TABLE IF EXISTS seats, holds, tickets, holdfast_fences"
                                     " CASCADE;"
                                     "CREATE TABLE seats (id text PRIMARY KEY,"
                                     "                    status text NOT NULL DEFAULT 'FREE',"
                                     "                    buyer text);"
                                     /* A ticket is what a buyer was sold and charged for. */
                                     "CREATE TABLE tickets (n serial PRIMARY KEY,"
                                     "                      seat text NOT NULL REFERENCES seats,"
                                     "                      buyer text NOT NULL,"
                                     "                      request text);"
                                     "INSERT INTO seats (id) VALUES ('A-1'), ('A-2')";

static const char stage_sqlite[] =
    "DROP TABLE IF EXISTS tickets; DROP TABLE IF EXISTS seats; DROP TABLE IF EXISTS locks;"
    "DROP TABLE IF EXISTS fences;"
    "CREATE TABLE seats (id TEXT PRIMARY KEY, status TEXT NOT NULL DEFAULT 'FREE', buyer TEXT);"
    "CREATE TABLE tickets (n INTEGER PRIMARY KEY, seat TEXT NOT NULL REFERENCES seats,"
    "                      buyer TEXT NOT NULL, request TEXT);"
    /* The locks, which Redis has elsewhere; see scene_lock.c. */
    "CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until_ms INTEGER NOT NULL,"
    "                    fence INTEGER NOT NULL DEFAULT 1);"
    "CREATE TABLE fences (name TEXT PRIMARY KEY, fence INTEGER NOT NULL);"
    "INSERT INTO seats (id) VALUES ('A-1'), ('A-2')";

static const struct strategy on_postgres = {.needs = STRATEGY_NEEDS_POSTGRES};
static const struct strategy on_both = {.needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS};
static const struct strategy on_sqlite = {.needs = STRATEGY_NEEDS_SQLITE};

__attribute__((format(printf, 1, 0))) static char *format(const char *fmt, va_list args)
{
    char *text;
    hf_check(vasprintf(&text, fmt, args) >= 0);
    return text;
}

static char *copy(const char *text) { return hf_strndup(text, strlen(text)); }

void scene_fail(struct scene *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = format(fmt, args);
    va_end(args);
    if (!s->failed)
        (void)hf_err_set(&s->err, HF_UNAVAILABLE, "%s", text);
    s->failed = true;
    free(text);
}

/* ---- the stage ---- */

static bool is_actor(const struct scene *s, const char *name)
{
    for (size_t i = 0; s->actors[i]; i++)
        if (strcmp(s->actors[i], name) == 0)
            return true;
    return false;
}

static bool connect(struct scene *s, struct runner **ret, struct hf_err *err)
{
    const struct strategy *needs = s->on_sqlite               ? &on_sqlite
                                   : is_actor(s, SCENE_REDIS) ? &on_both
                                                              : &on_postgres;
    if (!runner_open(needs, s->settings, ret, err))
        return false;
    (*ret)->outcome = &s->outcome;
    if (s->on_sqlite)
        scene_sqlite_now(s, (*ret)->sqlite);
    return true;
}

static size_t index_of(const struct scene *s, const char *who)
{
    size_t i = 0;
    while (strcmp(s->actors[i], who) != 0)
        hf_check(s->actors[++i]);
    return i;
}

/* The runner of an actor, connected; NULL if the scene has failed. */
static struct runner *runner_of(struct scene *s, const char *who)
{
    struct runner **runner = &s->runners[index_of(s, who)];
    if (!*runner && !s->failed && !connect(s, runner, &s->err))
        s->failed = true;
    return s->failed ? NULL : *runner;
}

static bool set_stage(struct scene *s)
{
    if (is_actor(s, SCENE_REDIS))
        freeReplyObject(runner_redis(s->judge, "FLUSHALL"));
    return runner_do(s->judge, s->on_sqlite ? stage_sqlite : stage_postgres) &&
           !runner_failed(s->judge);
}

bool scene_open(struct scene *s, const struct scene_place *place,
                const struct anomaly_played *played, struct anomaly_side *side, struct hf_err *err)
{
    const char *const *actors = played->actors;
    *s = (struct scene){.settings = place->settings,
                        .servers = place->servers,
                        .coordinator = place->coordinator,
                        .anomaly = played->anomaly,
                        .clock = &clock_system,
                        .actors = actors,
                        .side = side};
    s->on_sqlite = is_actor(s, SCENE_SQLITE);
    s->ledger = s->on_sqlite ? SCENE_SQLITE : SCENE_POSTGRES;
    s->locks = s->on_sqlite ? SCENE_SQLITE : SCENE_REDIS;
    if (!connect(s, &s->judge, err))
        return false;
    bool good = set_stage(s);
    for (size_t i = 0; good && actors[i]; i++)
        if (strcmp(actors[i], s->ledger) != 0 && strcmp(actors[i], s->locks) != 0)
            good = runner_of(s, actors[i]) != NULL;
    s->began_us = clock_monotonic_us(s->clock);
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", s->failed ? s->err.msg : s->outcome.why);
    if (!good)
        scene_close(s);
    return good;
}

static void close_actors(struct scene *s)
{
    for (size_t i = 0; i < ANOMALY_ACTORS_MAX; i++) {
        runner_close(s->runners[i]);
        s->runners[i] = NULL;
    }
}

void scene_close(struct scene *s)
{
    scene_clients_close(s);
    close_actors(s);
    runner_close(s->judge);
    s->judge = NULL;
}

/* ---- steps ---- */

/* Adds a step, which owns `text` from now on. */
static struct anomaly_step *record(struct scene *s, const char *from, const char *to, char *text)
{
    struct anomaly_step *step = vec_push(&s->side->steps);
    *step = (struct anomaly_step){
        .at_us = clock_monotonic_us(s->clock) - s->began_us, .from = from, .to = to, .text = text};
    return step;
}

static char *rows_text(const PGresult *result)
{
    struct buf b = {0};
    for (int i = 0; i < PQntuples(result); i++) {
        const char *value = PQgetisnull(result, i, 0) ? "NULL" : PQgetvalue(result, i, 0);
        buf_printf(&b, "%s%s", i ? ", " : "",
                   *value ? value : "done"); /* the value of a void function */
    }
    buf_str(&b, b.len ? "" : "no row");
    buf_char(&b, '\0');
    return b.data;
}

/* Clears `result`.  Returns NULL if the connection is lost. */
static char *answer_text(PGconn *pg, PGresult *result)
{
    char *text = NULL;
    const char *n = PQcmdTuples(result), *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        text = rows_text(result);
    else if (PQresultStatus(result) == PGRES_COMMAND_OK && *n)
        hf_check(asprintf(&text, "%s row%s", n, strcmp(n, "1") == 0 ? "" : "s") >= 0);
    else if (PQresultStatus(result) == PGRES_COMMAND_OK)
        text = copy(PQcmdStatus(result));
    else if (PQstatus(pg) == CONNECTION_OK)
        hf_check(asprintf(&text, "ERROR %s: %s", state ? state : "?",
                          PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)) >= 0);
    PQclear(result);
    return text;
}

const char *scene_sql(struct scene *s, const char *who, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct anomaly_step *step = record(s, who, s->ledger, format(fmt, args));
    va_end(args);
    struct runner *r = runner_of(s, who);
    if (r && s->on_sqlite)
        step->answer = scene_sqlite_answer(r->sqlite, step->text);
    else if (r)
        step->answer = answer_text(r->pg, PQexec(r->pg, step->text));
    if (r && !s->on_sqlite && PQstatus(r->pg) != CONNECTION_OK)
        return SCENE_LOST;
    return step->answer ? step->answer : "";
}

static char *list_text(const redisReply *list)
{
    struct buf b = {0};
    for (size_t i = 0; i < list->elements; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", list->element[i]->str ? list->element[i]->str : "?");
    buf_str(&b, b.len ? "" : "(empty)");
    buf_char(&b, '\0');
    return b.data;
}

static char *reply_text(const redisReply *reply)
{
    char *text;
    if (reply->type == REDIS_REPLY_ARRAY)
        return list_text(reply);
    if (reply->type == REDIS_REPLY_INTEGER)
        hf_check(asprintf(&text, "%lld", reply->integer) >= 0);
    else
        text = copy(reply->type == REDIS_REPLY_NIL ? "(nil)" : reply->str);
    return text;
}

/* Records the reply as the answer of the step, and frees it. */
static const char *record_reply(struct scene *s, struct anomaly_step *step, redisReply *reply)
{
    if (!reply)
        scene_fail(s, "%s", s->outcome.why);
    else
        step->answer = reply_text(reply);
    freeReplyObject(reply);
    return step->answer ? step->answer : "";
}

const char *scene_redis_words(struct scene *s, const char *who, const char *shown, int n,
                              const char *const *words)
{
    struct anomaly_step *step = record(s, who, SCENE_REDIS, copy(shown));
    struct runner *r = runner_of(s, who);
    if (!r)
        return "";
    return record_reply(s, step, redisCommandArgv(r->redis, n, (const char **)words, NULL));
}

const char *scene_redis(struct scene *s, const char *who, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = format(fmt, args), *line = copy(text), *rest = NULL;
    va_end(args);
    const char *words[16];
    int n = 0;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        hf_check(n < 16);
        words[n++] = word;
    }
    const char *answer = scene_redis_words(s, who, text, n, words);
    free(line);
    free(text);
    return answer;
}

void scene_note(struct scene *s, const char *who, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)record(s, who, who, format(fmt, args));
    va_end(args);
}

void scene_arrow(struct scene *s, const char *from, const char *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)record(s, from, to, format(fmt, args));
    va_end(args);
}

size_t scene_request(struct scene *s, const char *from, const char *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)record(s, from, to, format(fmt, args));
    va_end(args);
    return s->side->steps.n - 1;
}

const char *scene_answer(struct scene *s, size_t step, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s->side->steps.v[step].answer = format(fmt, args);
    va_end(args);
    return s->side->steps.v[step].answer;
}

pid_t *scene_pid(struct scene *s, const char *who) { return &s->pids[index_of(s, who)]; }

void scene_think(struct scene *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct anomaly_step *last = &s->side->steps.v[s->side->steps.n - 1];
    free(last->thinks);
    last->thinks = format(fmt, args);
    va_end(args);
}

/* ---- waiting ---- */

/* Returns whether the server has answered or waits for a lock. */
static bool answered_or_waiting(struct scene *s, PGconn *pg)
{
    char sql[128];
    if (!PQconsumeInput(pg) || !PQisBusy(pg))
        return true;
    snprintf(sql, sizeof sql,
             "SELECT 1 FROM pg_stat_activity WHERE pid = %d AND wait_event_type = 'Lock'",
             PQbackendPID(pg));
    char *waiting = scene_ask(s, sql);
    free(waiting);
    return waiting != NULL;
}

void scene_send(struct scene *s, const char *who, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const struct anomaly_step *step = record(s, who, SCENE_POSTGRES, format(fmt, args));
    va_end(args);
    struct runner *r = runner_of(s, who);
    if (!r)
        return;
    if (!PQsendQuery(r->pg, step->text))
        scene_fail(s, "PostgreSQL: %s", PQerrorMessage(r->pg));
    for (int ms = 0; !s->failed && !answered_or_waiting(s, r->pg); ms += POLL_MS) {
        if (ms > WAIT_MS_MAX)
            scene_fail(s, "PostgreSQL neither answers nor waits: %s", step->text);
        wait_sleep_us(POLL_MS * 1000);
    }
}

const char *scene_wait(struct scene *s, const char *who)
{
    struct runner *r = runner_of(s, who);
    PGresult *result = r ? PQgetResult(r->pg) : NULL;
    if (!result)
        return "";
    char *text = answer_text(r->pg, result);
    while ((result = PQgetResult(r->pg)))
        PQclear(result);
    if (!text) {
        scene_fail(s, "PostgreSQL: %s", PQerrorMessage(r->pg));
        return "";
    }
    (void)record(s, SCENE_POSTGRES, who, text);
    return text;
}

void scene_await(struct scene *s, bool (*happened)(struct scene *s, const char *who),
                 const char *who, const char *what)
{
    for (int ms = 0; !s->failed && !happened(s, who); ms += POLL_MS) {
        if (ms > WAIT_MS_MAX)
            scene_fail(s, "it takes too long until %s", what);
        wait_sleep_us(POLL_MS * 1000);
    }
}

void scene_disconnect(struct scene *s, const char *who)
{
    struct runner **runner = &s->runners[index_of(s, who)];
    runner_close(*runner);
    *runner = NULL;
}

void scene_reconnect(struct scene *s, const char *who, int port)
{
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    const char *const keywords[] = {"dbname", "host", "port", "sslmode", "gssencmode", NULL};
    const char *const values[] = {
        s->settings->postgres, "127.0.0.1", text, "disable", "disable", NULL};
    struct runner *r = runner_of(s, who);
    if (!r)
        return;
    PQfinish(r->pg);
    r->pg = PQconnectdbParams(keywords, values, 1);
    if (PQstatus(r->pg) != CONNECTION_OK)
        scene_fail(s, "PostgreSQL: %s", PQerrorMessage(r->pg));
}

/* ---- the judge ---- */

PGconn *scene_pg(struct scene *s, const char *who)
{
    const struct runner *r = runner_of(s, who);
    return r ? r->pg : NULL;
}

void scene_prepare(struct scene *s, const char *sql)
{
    if (!s->failed && !runner_do(s->judge, sql))
        scene_fail(s, "%s", s->outcome.why);
    s->began_us = clock_monotonic_us(s->clock);
}

static char *ask_sqlite(struct scene *s, const char *sql)
{
    char *answer = scene_sqlite_answer(s->judge->sqlite, sql);
    if (strncmp(answer, "ERROR", 5) == 0)
        scene_fail(s, "SQLite: %s", answer);
    else if (strcmp(answer, "no row") != 0 && strcmp(answer, "NULL") != 0)
        return answer;
    free(answer);
    return NULL;
}

char *scene_ask(struct scene *s, const char *sql)
{
    if (s->failed)
        return NULL;
    if (s->on_sqlite)
        return ask_sqlite(s, sql);
    PGresult *result = PQexec(s->judge->pg, sql);
    char *value = NULL;
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        scene_fail(s, "PostgreSQL: %s", PQerrorMessage(s->judge->pg));
    else if (PQntuples(result) > 0 && !PQgetisnull(result, 0, 0))
        value = copy(PQgetvalue(result, 0, 0));
    PQclear(result);
    return value;
}

void scene_judge(struct scene *s, const char *harm, const char *fine)
{
    char *evidence = scene_ask(s, harm);
    s->side->violated = evidence != NULL;
    free(s->side->evidence);
    s->side->evidence = evidence ? evidence : scene_ask(s, fine);
    if (!s->side->evidence)
        s->side->evidence = copy(SCENE_NOTHING_SOLD);
}

void scene_verdict(struct scene *s, bool is_violated, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    free(s->side->evidence);
    s->side->evidence = format(fmt, args);
    s->side->violated = is_violated;
    va_end(args);
}

long long scene_ask_redis(struct scene *s, const char *fmt, ...)
{
    if (s->failed)
        return 0;
    va_list args;
    va_start(args, fmt);
    redisReply *reply = redisvCommand(s->judge->redis, fmt, args);
    va_end(args);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        scene_fail(s, "Redis: %s", reply ? reply->str : s->judge->redis->errstr);
    bool is_text = reply && reply->type == REDIS_REPLY_STRING;
    long long number = is_text ? strtoll(reply->str, NULL, 10) : reply ? reply->integer : 0;
    freeReplyObject(reply);
    return number;
}

/* PostgreSQL has string_agg(... ORDER BY ...); SQLite has group_concat, which takes the rows in the
 * order of a subquery. */
#define TWICE(list_of_buyers, list, tickets)                                                       \
    "SELECT " list "(seat || ' has ' || n || ' tickets: ' || buyers, '; ')"                        \
    " FROM (SELECT seat, count(*) AS n, " list_of_buyers " AS buyers"                              \
    "       FROM " tickets " GROUP BY seat HAVING count(*) > 1) AS twice"
#define ONCE(list_of_seats, tickets) "SELECT " list_of_seats " FROM " tickets
#define SEATS "seat || ' has 1 ticket: ' || buyer, '; '"
#define IN_ORDER "(SELECT * FROM tickets ORDER BY n)"

void scene_judge_tickets(struct scene *s)
{
    if (s->on_sqlite)
        scene_judge(s, TWICE("group_concat(buyer, ' and ')", "group_concat", IN_ORDER),
                    ONCE("group_concat(" SEATS ")", IN_ORDER));
    else
        scene_judge(s, TWICE("string_agg(buyer, ' and ' ORDER BY n)", "string_agg", "tickets"),
                    ONCE("string_agg(" SEATS " ORDER BY n)", "tickets"));
}

/* A backend reports its statistics when it ends, if not before. */
static bool actors_are_gone(struct scene *s, const char *who)
{
    (void)who;
    char *others = scene_ask(s, "SELECT 1 FROM pg_stat_activity WHERE backend_type ="
                                " 'client backend' AND pid <> pg_backend_pid() LIMIT 1");
    free(others);
    return !others;
}

void scene_dismiss(struct scene *s)
{
    close_actors(s);
    scene_await(s, actors_are_gone, NULL, "PostgreSQL has let the actors go");
}
