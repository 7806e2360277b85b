/* See postgres_server.h. */
#include "support/postgres_server.h"

#include <fcntl.h>
#include <glob.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"
#include "support/process.h"

#define USER "holdfast"

/* ---- a clock of its own ---- */

static void clock_path(const char *dir, char ret[128])
{
    (void)snprintf(ret, 128, "%s/clock", dir);
}

void postgres_server_set_clock(const struct postgres_server *s, int ahead_s)
{
    char path[128], new_path[160];
    clock_path(s->dir, path);
    (void)snprintf(new_path, sizeof new_path, "%s.new", path);
    FILE *file = fopen(new_path, "w");
    hf_check(file && fprintf(file, "%+d\n", ahead_s) > 0 && fclose(file) == 0);
    hf_check(chmod(new_path, 0644) == 0 && rename(new_path, path) == 0);
}

static void use_own_clock(const struct postgres_server *s)
{
    char path[128];
    glob_t found = {0};
    hf_check(glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found) == 0);
    clock_path(s->dir, path);
    setenv("SERVER_PRELOAD", found.gl_pathv[0], 1);
    setenv("FAKETIME_TIMESTAMP_FILE", path, 1);
    setenv("FAKETIME_NO_CACHE", "1", 1);
    setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
    setenv("DONT_FAKE_MONOTONIC", "1", 1);
    globfree(&found);
}

/* ---- processes ---- */

static void make_dir(struct postgres_server *s)
{
    process_make_dir("pg", s->dir, sizeof s->dir);
    s->port = port_free(NULL);
}

void postgres_server_url(const struct postgres_server *s, const char *database,
                         char ret_url[POSTGRES_URL_SIZE])
{
    (void)snprintf(ret_url, POSTGRES_URL_SIZE, "postgres://" USER "@127.0.0.1:%d/%s", s->port,
                   database);
}

static bool is_serving(const void *server)
{
    char url[POSTGRES_URL_SIZE];
    postgres_server_url(server, "postgres", url);
    return PQping(url) == PQPING_OK;
}

void postgres_server_again(struct postgres_server *s)
{
    char port[16], connections[32];
    (void)snprintf(port, sizeof port, "%d", s->port);
    (void)snprintf(connections, sizeof connections, "max_connections=%d", s->max_connections);
    const char *words[] = {"postgres",  s->dir, port, s->max_connections ? "-c" : NULL,
                           connections, NULL};
    if (s->has_own_clock) {
        postgres_server_set_clock(s, 0);
        use_own_clock(s);
    }
    s->pid = process_spawn(s->dir, words);
    (void)unsetenv("SERVER_PRELOAD");
    hf_check(process_await(&s->pid, is_serving, s));
}

static ssize_t read_proc(pid_t pid, const char *name, char *ret, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, ret, size) : 0;
    if (fd >= 0)
        close(fd);
    return len;
}

/* How often a process is looked at, once per millisecond or more: a busy machine may let it wait.
 */
#define LOOKS_MAX 30000

/* They are not our children, so we cannot wait for them: a process that has ended has an empty
 * command line. */
static void await_end(pid_t pid)
{
    char byte;
    for (int i = 0; i < LOOKS_MAX && read_proc(pid, "cmdline", &byte, 1) > 0; i++)
        usleep(1000);
}

/* Returns when the process stands still: kill() alone does not wait for that. */
static void await_stop(pid_t pid)
{
    char text[512];
    for (int i = 0; i < LOOKS_MAX; i++, usleep(1000)) {
        ssize_t len = read_proc(pid, "stat", text, sizeof text - 1);
        if (len <= 0)
            return;
        text[len] = '\0';
        const char *name_end = strrchr(text, ')');
        if (name_end && strchr("TtZX", name_end[2]))
            return;
    }
}

static void signal_children(pid_t pid, int sig)
{
    char name[64], text[4096] = "";
    (void)snprintf(name, sizeof name, "task/%d/children", (int)pid);
    ssize_t len = read_proc(pid, name, text, sizeof text - 1);
    char *at = text;
    for (long child; len > 0 && (child = strtol(at, &at, 10)) > 0;) {
        kill((pid_t)child, sig);
        if (sig == SIGKILL)
            await_end((pid_t)child);
        if (sig == SIGSTOP)
            await_stop((pid_t)child);
    }
}

void postgres_server_kill(struct postgres_server *s)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGSTOP); /* so that it starts no further process */
    await_stop(s->pid);
    signal_children(s->pid, SIGKILL);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void postgres_server_stop(struct postgres_server *s)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGINT);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void postgres_server_freeze(const struct postgres_server *s, bool frozen)
{
    kill(s->pid, frozen ? SIGSTOP : SIGCONT);
    if (frozen)
        await_stop(s->pid);
    signal_children(s->pid, frozen ? SIGSTOP : SIGCONT);
}

void postgres_server_remove(struct postgres_server *s)
{
    postgres_server_kill(s);
    process_remove(s->dir);
}

void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary)
{
    char url[POSTGRES_URL_SIZE];
    make_dir(s);
    postgres_server_url(primary, "postgres", url);
    process_run(s->dir, (const char *const[]){"postgres-tool", s->dir, "pg_basebackup", "-d", url,
                                              "-D", "data", "-R", "-c", "fast", "--no-sync", NULL});
    postgres_server_again(s);
}

/* ---- the server of this program ---- */

static struct postgres_server own;
static pid_t owner;

static void end_own(void)
{
    if (getpid() == owner)
        postgres_server_remove(&own);
}

struct postgres_server *postgres_server_own(void)
{
    if (own.dir[0])
        return &own;
    make_dir(&own);
    owner = getpid();
    atexit(end_own);
    postgres_server_again(&own);
    return &own;
}

const char *postgres_server_ask(const struct postgres_server *s, const char *database,
                                const char *sql)
{
    static char value[8192];
    char url[POSTGRES_URL_SIZE];
    postgres_server_url(s, database, url);
    PGconn *conn = PQconnectdb(url);
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
        abort();
    }
    bool any = status == PGRES_TUPLES_OK && PQntuples(result) && PQnfields(result);
    (void)snprintf(value, sizeof value, "%s", any ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
    return value;
}

void postgres_server_fresh(char ret_url[POSTGRES_URL_SIZE])
{
    static unsigned n;
    char sql[128], name[32];
    const struct postgres_server *s = postgres_server_own();
    if (n) {
        (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS test%u WITH (FORCE)", n);
        (void)postgres_server_ask(s, "postgres", sql);
    }
    (void)snprintf(name, sizeof name, "test%u", ++n);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s", name);
    (void)postgres_server_ask(s, "postgres", sql);
    postgres_server_url(s, name, ret_url);
}

void postgres_server_fresh_patient(char ret_url[POSTGRES_URL_SIZE])
{
    postgres_server_fresh(ret_url);
    size_t len = strlen(ret_url);
    (void)snprintf(ret_url + len, POSTGRES_URL_SIZE - len, "%s", POSTGRES_PATIENT_URL);
}
