/* See postgres_server.h. */
#include "support/postgres_server.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "support/leaks.h"
#include "support/port.h"

#define USER "holdfast"

static const char *bin_dir(void)
{
    static char dir[256];
    glob_t found = {0};
    if (!dir[0] && glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0) {
        const char *last = found.gl_pathv[found.gl_pathc - 1];
        (void)snprintf(dir, sizeof dir, "%.*s", (int)(strlen(last) - strlen("/postgres")), last);
    } else if (!dir[0]) {
        FILE *asked = popen("pg_config --bindir", "r");
        hf_check(asked && fgets(dir, sizeof dir, asked));
        dir[strcspn(dir, "\n")] = '\0';
        pclose(asked);
    }
    globfree(&found);
    return dir;
}

/* PostgreSQL refuses to run as root, so root starts it as another user. */
static const struct passwd *nobody(void)
{
    const struct passwd *user = getpwnam("postgres");
    return user ? user : getpwnam("nobody");
}

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

/* Runs in the child. */
static void use_own_clock(const char *dir)
{
    char path[128];
    glob_t found = {0};
    hf_check(glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found) == 0);
    clock_path(dir, path);
    setenv("LD_PRELOAD", found.gl_pathv[0], 1);
    setenv("FAKETIME_TIMESTAMP_FILE", path, 1);
    setenv("FAKETIME_NO_CACHE", "1", 1);
    setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
    setenv("DONT_FAKE_MONOTONIC", "1", 1);
}

/* ---- processes ---- */

/* Runs in the child and never returns.  args[0] is reserved for the path. */
static void become(const char *dir, const char *program, const char **args)
{
    char path[512], log[128];
    (void)snprintf(path, sizeof path, "%s/%s", bin_dir(), program);
    args[0] = path;
    (void)snprintf(log, sizeof log, "%s/log", dir);
    if (getuid() == 0) {
        const struct passwd *user = nobody();
        if (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
            _exit(126);
    }
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (chdir(dir) != 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(126);
    execv(path, (char *const *)(uintptr_t)args);
    _exit(127);
}

static pid_t launch(const char *dir, bool has_own_clock, const char *program, const char **args)
{
    (void)bin_dir();
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        if (has_own_clock)
            use_own_clock(dir);
        become(dir, program, args);
    }
    return pid;
}

static void run(const char *dir, const char *program, const char **args)
{
    int status;
    pid_t pid = launch(dir, false, program, args);
    hf_check(waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "%s failed; see %s/log\n", program, dir);
        abort();
    }
}

static void make_dir(struct postgres_server *s)
{
    (void)snprintf(s->dir, sizeof s->dir, "/tmp/holdfast-pg-XXXXXX");
    hf_check(mkdtemp(s->dir));
    if (getuid() == 0)
        hf_check(chown(s->dir, nobody()->pw_uid, nobody()->pw_gid) == 0);
    (void)snprintf(s->data, sizeof s->data, "%s/data", s->dir);
    s->port = port_free(NULL);
}

void postgres_server_url(const struct postgres_server *s, const char *database,
                         char ret_url[POSTGRES_URL_SIZE])
{
    (void)snprintf(ret_url, POSTGRES_URL_SIZE, "postgres://" USER "@127.0.0.1:%d/%s", s->port,
                   database);
}

void postgres_server_again(struct postgres_server *s)
{
    char port[32], connections[32], url[POSTGRES_URL_SIZE];
    (void)snprintf(port, sizeof port, "port=%d", s->port);
    (void)snprintf(connections, sizeof connections, "max_connections=%d",
                   s->max_connections ? s->max_connections : 100);
    if (s->has_own_clock)
        postgres_server_set_clock(s, 0);
    const char *args[] = {NULL,
                          "-D",
                          s->data,
                          "-k",
                          s->dir,
                          "-c",
                          port,
                          "-c",
                          "listen_addresses=127.0.0.1",
                          "-c",
                          "fsync=off",
                          "-c",
                          "shared_buffers=32MB",
                          "-c",
                          connections,
                          "-c",
                          "log_min_messages=warning",
                          NULL};
    s->pid = launch(s->dir, s->has_own_clock, "postgres", args);
    postgres_server_url(s, "postgres", url);
    for (int i = 0; i < 3000; i++) {
        size_t before = leaks_now();
        PGPing answer = PQping(url);
        leaks_expect_since(before);
        if (answer == PQPING_OK)
            return;
        hf_check(waitpid(s->pid, NULL, WNOHANG) == 0);
        usleep(10000);
    }
    hf_check(!"PostgreSQL does not answer");
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
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", s->dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary)
{
    char url[POSTGRES_URL_SIZE];
    make_dir(s);
    postgres_server_url(primary, "postgres", url);
    const char *args[] = {NULL, "-d", url, "-D", s->data, "-R", "-c", "fast", "--no-sync", NULL};
    run(s->dir, "pg_basebackup", args);
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
    const char *args[] = {NULL,    "-D", own.data, "-U",         USER,        "-A",
                          "trust", "-E", "UTF8",   "--locale=C", "--no-sync", NULL};
    run(own.dir, "initdb", args);
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
