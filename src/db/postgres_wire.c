/* What goes over one connection to PostgreSQL: dialling the hosts of the URL, waiting, errors.  See
 * postgres_link.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/local_host.h"
#include "base/settings.h"
#include "base/wait.h"
#include "db/postgres_link.h"

#define HEED_MS 100 /* after which a wait notices a new give_up_us */

/* Uses the first line of `text`: libpq ends it with a newline and adds details in further lines. */
static enum hf_status unavailable(const char *text, struct hf_err *err)
{
    int len = (int)strcspn(text, "\n");
    return hf_err_set(err, HF_STORE_UNAVAILABLE, "PostgreSQL: %.*s", len,
                      len ? text : "the connection was lost");
}

enum hf_status pg_link_error(const struct pg_link *l, struct hf_err *err)
{
    return unavailable(l->conn ? PQerrorMessage(l->conn) : "", err);
}

bool pg_has_state(const PGresult *result, const char *sqlstate)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state && strncmp(state, sqlstate, strlen(sqlstate)) == 0;
}

bool pg_is_fatal(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (!severity) /* PgBouncer has only the other one */
        severity = PQresultErrorField(result, PG_DIAG_SEVERITY);
    bool ends = severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
    return ends || pg_has_state(result, "08"); /* the class of lost connections */
}

enum hf_status pg_error(const PGresult *result, struct hf_err *err)
{
    static const struct {
        const char *prefix;
        enum hf_status status;
    } states[] = {
        {"40001", HF_CONFLICT},          /* could not serialize */
        {"40P01", HF_CONFLICT},          /* deadlock */
        {"55P03", HF_CONFLICT},          /* lock_timeout */
        {PG_STALE_PLAN, HF_CONFLICT},    /* it works once it is prepared again */
        {"08", HF_STORE_UNAVAILABLE},    /* connection */
        {"25006", HF_STORE_UNAVAILABLE}, /* read-only: it has become a standby */
        {"25P0", HF_STORE_UNAVAILABLE},  /* idle too long in a transaction */
        {"28", HF_STORE_UNAVAILABLE},    /* not let in */
        {"42501", HF_STORE_UNAVAILABLE}, /* not allowed */
        {"53", HF_STORE_UNAVAILABLE},    /* no disk, memory, connections */
        {"57", HF_STORE_UNAVAILABLE},    /* cancelled, shutdown */
        {"58", HF_STORE_UNAVAILABLE},    /* I/O */
        {"XX001", HF_STORE_UNAVAILABLE}, /* damaged */
        {"XX002", HF_STORE_UNAVAILABLE},
    };
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!state)
        return unavailable(PQresultErrorMessage(result), err);
    enum hf_status status = HF_INTERNAL;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (pg_has_state(result, states[i].prefix))
            status = states[i].status;
    bool is_pooled =
        pg_has_state(result, PG_NO_STATEMENT) || pg_has_state(result, PG_OTHER_STATEMENT);
    return hf_err_set(err, status, "PostgreSQL: %s (%s)%s", text ? text : "", state,
                      is_pooled ? "; a pooler in between must pool sessions, not transactions"
                                : "");
}

/* ---- waiting ---- */

/* Returns db_options.give_up_us, or INT64_MAX if there is none. */
static int64_t give_up_us(const struct pg_link *l)
{
    int64_t at_us = l->give_up_us ? atomic_load(l->give_up_us) : 0;
    return at_us ? at_us : INT64_MAX;
}

bool pg_link_gave_up(const struct pg_link *l) { return wait_now_us() >= give_up_us(l); }

/* As poll(2) with one file; returns -2 when the time has come. */
static int poll_until(const struct pg_link *l, struct pollfd *p, int64_t until_us)
{
    int64_t end_us = give_up_us(l) < until_us ? give_up_us(l) : until_us;
    int64_t left_us = end_us - wait_now_us();
    if (left_us <= 0)
        return -2;
    return wait_files(p, 1, l->give_up_us && left_us > HEED_MS * 1000 ? HEED_MS * 1000 : left_us);
}

/* Sleeps until the connection can be read, or written to if something is unsent, and reads what
 * there is. */
static enum hf_status wait_for_server(struct pg_link *l, int unsent, int64_t until_us,
                                      struct hf_err *err)
{
    struct pollfd p = {.fd = PQsocket(l->conn), .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
    int n = poll_until(l, &p, until_us);
    if (n == -2)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "PostgreSQL: no answer in time");
    if (n < 0 && errno != EINTR)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "PostgreSQL: poll: %s", strerror(errno));
    if (n > 0 && p.revents & ~POLLOUT && !PQconsumeInput(l->conn))
        return pg_link_error(l, err);
    return HF_OK;
}

/* PQflush may fail while the reason is still to be read: reading goes on until that fails too. */
enum hf_status pg_link_wait(struct pg_link *l, int64_t timeout_ms, struct hf_err *err)
{
    int64_t until_us = wait_now_us() + timeout_ms * 1000;
    if (l->unasked)
        l->exchanges++;
    l->unasked = false;
    for (;;) {
        int unsent = PQflush(l->conn);
        if (!PQisBusy(l->conn))
            return HF_OK;
        enum hf_status status = wait_for_server(l, unsent > 0, until_us, err);
        if (status != HF_OK)
            return status;
    }
}

enum hf_status pg_link_flush(struct pg_link *l, struct hf_err *err)
{
    int64_t until_us = wait_now_us() + PG_MARGIN_MS * 1000;
    int unsent;
    while ((unsent = PQflush(l->conn)) > 0) {
        enum hf_status status = wait_for_server(l, unsent, until_us, err);
        if (status != HF_OK)
            return status;
    }
    return unsent < 0 ? pg_link_error(l, err) : HF_OK;
}

/* Reads all results of a simple query; the first failure counts. */
static enum hf_status read_results(struct pg_link *l, int64_t timeout_ms, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (;;) {
        struct hf_err why = {0};
        enum hf_status waited = pg_link_wait(l, timeout_ms, &why);
        PGresult *result = waited == HF_OK ? PQgetResult(l->conn) : NULL;
        bool failed = PQresultStatus(result) == PGRES_FATAL_ERROR;
        if (waited == HF_OK && result && failed)
            pg_error(result, &why);
        PQclear(result);
        if (why.code != HF_OK && status == HF_OK)
            status = hf_err_set(err, why.code, "%s", why.msg);
        if (waited != HF_OK || !result)
            return status;
    }
}

enum hf_status pg_link_run(struct pg_link *l, const char *sql, int64_t timeout_ms,
                           struct hf_err *err)
{
    l->unasked = true;
    return PQsendQuery(l->conn, sql) ? read_results(l, timeout_ms, err) : pg_link_error(l, err);
}

enum hf_status pg_link_script(struct pg_link *l, const char *sql, int64_t timeout_ms,
                              struct hf_err *err)
{
    if (!PQexitPipelineMode(l->conn))
        return pg_link_error(l, err);
    enum hf_status status = pg_link_run(l, sql, timeout_ms, err);
    if (PQstatus(l->conn) == CONNECTION_BAD || !PQenterPipelineMode(l->conn))
        return status == HF_OK ? pg_link_error(l, err) : status;
    return status;
}

/* ---- connecting ---- */

void pg_link_drop(struct pg_link *l)
{
    PQfinish(l->conn);
    l->conn = NULL;
    l->unasked = false;
}

/* Copies the ith item of a list "a,b,c" to `ret`, or its last one if it has fewer. */
static void pick(const char *list, int i, char *ret, size_t size)
{
    const char *at = list ? list : "", *comma;
    while (i-- > 0 && (comma = strchr(at, ',')))
        at = comma + 1;
    (void)snprintf(ret, size, "%.*s", (int)strcspn(at, ","), at);
}

static int list_len(const char *list)
{
    int n = 1;
    for (const char *at = list; at && (at = strchr(at, ',')); at++)
        n++;
    return n;
}

struct link_hosts {
    char *host, *address, *port;
    int n;
    int64_t connect_ms;   /* 0: no connect_timeout is given */
    bool has_sslmode;     /* the URL has it, or the environment, or a service that they name */
    bool has_sslrootcert; /* as well */
};

/* Takes over what is known from these options and was not known before. */
static void hosts_take(const PQconninfoOption *o, struct link_hosts *ret)
{
    for (; o && o->keyword; o++) {
        char **field = strcmp(o->keyword, "host") == 0       ? &ret->host
                       : strcmp(o->keyword, "hostaddr") == 0 ? &ret->address
                       : strcmp(o->keyword, "port") == 0     ? &ret->port
                                                             : NULL;
        if (!o->val)
            continue;
        if (field && !*field)
            *field = hf_strndup(o->val, strlen(o->val));
        if (strcmp(o->keyword, "connect_timeout") == 0 && !ret->connect_ms)
            ret->connect_ms = strtoll(o->val, NULL, 10) * 1000;
        ret->has_sslmode |= strcmp(o->keyword, "sslmode") == 0;
        ret->has_sslmode |= strcmp(o->keyword, "service") == 0; /* which libpq reads */
        ret->has_sslrootcert |= strcmp(o->keyword, "sslrootcert") == 0;
    }
}

/* The URL counts first, and then the environment, in which values that libpq has by itself are not
 * told from those that somebody has set to the same. */
static void hosts_read(const char *url, struct link_hosts *ret)
{
    PQconninfoOption *of_url = PQconninfoParse(url, NULL), *others = PQconndefaults();
    hosts_take(of_url, ret);
    for (PQconninfoOption *o = others; o && o->keyword; o++)
        if (o->val && o->compiled && strcmp(o->val, o->compiled) == 0) {
            PQfreemem(o->val);
            o->val = NULL;
        }
    hosts_take(others, ret);
    PQconninfoFree(of_url);
    PQconninfoFree(others);
    ret->n = list_len(ret->address ? ret->address : ret->host);
}

static void hosts_close(struct link_hosts *hosts)
{
    free(hosts->host);
    free(hosts->address);
    free(hosts->port);
}

/* The authorities that the machine trusts, as libpq wants them. */
static const char *system_authorities(void)
{
    static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
    };
    if (PQlibVersion() >= 160000)
        return "system";
    for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++)
        if (access(bundles[i], R_OK) == 0)
            return bundles[i];
    return bundles[0]; /* libpq says that it is missing */
}

/* Is it for us to say that the server has to prove who it is?  On the way to another machine it is,
 * unless somebody has said what they want.  A name counts before its address: a tunnel ends on this
 * machine, and the server does not. */
static bool verifies_by_default(const struct link_hosts *hosts, int i)
{
    char host[256], address[256];
    pick(hosts->host, i, host, sizeof host);
    pick(hosts->address, i, address, sizeof address);
    return !hosts->has_sslmode && !host_is_local(*host ? host : address);
}

/* The URL overrides the parameters before `dbname` here and not those behind it.  Of several hosts
 * libpq gets one: it would wait for the first one for ever. */
static PGconn *dial(const char *url, const struct link_hosts *hosts, int i)
{
    bool verifies = verifies_by_default(hosts, i);
    char host[256], address[256], port[32];
    pick(hosts->host, i, host, sizeof host);
    pick(hosts->address, i, address, sizeof address);
    pick(hosts->port, i, port, sizeof port);
    const char *const names[] = {"password",
                                 "fallback_application_name",
                                 "target_session_attrs",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 "tcp_user_timeout",
                                 "sslmode",
                                 "sslrootcert",
                                 "dbname",
                                 "client_encoding",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 NULL};
    /* libpq would read the password itself, from where it may have been removed (settings.h). */
    const char *const values[] = {settings_environment("PGPASSWORD"),
                                  "holdfast",
                                  "read-write",
                                  PG_KEEP_IDLE_S,
                                  PG_KEEP_EVERY_S,
                                  PG_KEEP_COUNT,
                                  PG_UNACKNOWLEDGED_MS,
                                  verifies ? "verify-full" : NULL,
                                  verifies && !hosts->has_sslrootcert ? system_authorities() : NULL,
                                  url,
                                  "UTF8",
                                  host,
                                  address,
                                  port,
                                  NULL};
    return PQconnectStartParams(names, values, 1);
}

/* Says what to do about a server that did not prove who it is, if it was for us to ask. */
static void add_advice(struct hf_err *why)
{
    static const char advice[] = "; set sslrootcert=FILE in the URL, or sslmode";
    size_t len = strlen(why->msg);
    if ((strstr(why->msg, "SSL") || strstr(why->msg, "certificate")) &&
        len + sizeof advice <= sizeof why->msg)
        memcpy(why->msg + len, advice, sizeof advice);
}

static bool connect_until(struct pg_link *l, int64_t until_us)
{
    PGconn *conn = l->conn;
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    while (want == PGRES_POLLING_READING || want == PGRES_POLLING_WRITING) {
        struct pollfd p = {.fd = PQsocket(conn),
                           .events = want == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int n = poll_until(l, &p, until_us);
        if (n == -2 || (n == -1 && errno != EINTR))
            return false;
        if (n > 0)
            want = PQconnectPoll(conn);
    }
    return want == PGRES_POLLING_OK;
}

/* Tries host after host, each with its share of the time that is left.  The first failure is the
 * one that is reported. */
enum hf_status pg_link_dial(struct pg_link *l, struct hf_err *err)
{
    struct link_hosts hosts = {0};
    enum hf_status status = HF_STORE_UNAVAILABLE;
    hosts_read(l->url, &hosts);
    int64_t until_us = wait_now_us() + (hosts.connect_ms ? hosts.connect_ms : l->connect_ms) * 1000;
    for (int i = 0; i < hosts.n && status != HF_OK; i++) {
        int64_t now = wait_now_us(), share_us = (until_us - now) / (hosts.n - i);
        l->conn = dial(l->url, &hosts, i);
        struct hf_err why = {0};
        if (PQstatus(l->conn) != CONNECTION_BAD && connect_until(l, now + share_us))
            status = HF_OK;
        else if (PQstatus(l->conn) == CONNECTION_BAD)
            (void)pg_link_error(l, &why);
        else
            (void)hf_err_set(&why, status, "PostgreSQL: no answer in time while connecting");
        if (status != HF_OK) {
            if (verifies_by_default(&hosts, i))
                add_advice(&why);
            if (i == 0)
                (void)hf_err_set(err, why.code, "%s", why.msg);
            pg_link_drop(l);
        }
    }
    hosts_close(&hosts);
    return status;
}
