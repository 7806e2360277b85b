/* See servers.h.  launch.h starts the servers.  The keeper, another child of this process, reads
 * from a pipe whose other end only this process has, and removes the directory when the pipe is
 * closed.  Main thread. */
#include "lab/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/launch.h"

#define REMOVE_TRIES_MAX 1000

bool servers_have_postgres(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find("initdb", path) && launch_find("postgres", path);
}

bool servers_have_redis(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find("redis-server", path);
}

/* ---- the directory ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

/* The keeper's whole life.  Servers that are ending may still create files, so it removes the
 * directory until it is gone. */
_Noreturn static void keeper_main(const char *dir, int fd)
{
    char byte;
    (void)setsid();
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_IGN);
    for (int other = 0; other < 1024; other++)
        if (other != fd)
            (void)close(other);
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int i = 0; access(dir, F_OK) == 0 && i < REMOVE_TRIES_MAX; i++) {
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        launch_pause();
    }
    _exit(0);
}

bool servers_open(struct servers *s, struct hf_err *err)
{
    int ends[2];
    const char *tmp = getenv("TMPDIR");
    *s = (struct servers){0};
    /* A socket's path has room for 107 bytes. */
    bool usable = tmp && tmp[0] == '/' && strlen(tmp) < sizeof s->dir - 24;
    (void)snprintf(s->dir, sizeof s->dir, "%s/holdfast-lab-XXXXXX", usable ? tmp : "/tmp");
    const struct passwd *user = launch_user();
    if (!mkdtemp(s->dir)) {
        (void)hf_err_set(err, HF_INTERNAL, "%s: %s", s->dir, strerror(errno));
        s->dir[0] = '\0';
        return false;
    }
    if ((user && chown(s->dir, user->pw_uid, user->pw_gid) != 0) || pipe2(ends, O_CLOEXEC) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "%s: %s", s->dir, strerror(errno));
        (void)rmdir(s->dir);
        s->dir[0] = '\0';
        return false;
    }
    s->keeper = fork();
    if (s->keeper == 0)
        keeper_main(s->dir, ends[0]);
    (void)close(ends[0]);
    s->keeper_fd = ends[1];
    if (s->keeper > 0)
        return true;
    (void)hf_err_set(err, HF_INTERNAL, "fork: %s", strerror(errno));
    return false;
}

void servers_close(struct servers *s)
{
    servers_stop(&s->holdfastd);
    servers_stop(&s->redis);
    servers_stop(&s->postgres);
    if (s->dir[0])
        (void)close(s->keeper_fd);
    if (s->keeper > 0)
        (void)waitpid(s->keeper, NULL, 0);
    *s = (struct servers){0};
}

/* ---- a server ---- */

/* Waits until a server that was launched answers; `s->pid` is what launch_start returned. */
static bool await(struct lab_server *s, bool (*answers)(const void *url), const struct launch *l,
                  const char *what, struct hf_err *err)
{
    return launch_await(&s->pid, answers, s->url) || launch_fail(l, what, err);
}

void servers_stop(struct lab_server *s) { launch_stop(&s->pid); }

/* ---- PostgreSQL ---- */

static bool postgres_answers(const void *url) { return PQping(url) == PQPING_OK; }

static bool make_cluster(const struct servers *s, struct hf_err *err)
{
    struct launch l = {
        .args = {NULL, "-D", "postgres", "-U", "holdfast", "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-sync", NULL},
        .dir = s->dir,
        .log = "initdb.log",
        .user = launch_user(),
        .out = -1,
        .death_signal = SIGKILL,
    };
    if (!launch_find("initdb", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "initdb is not in PATH");
        return false;
    }
    return launch_run(&l) || launch_fail(&l, "initdb", err);
}

bool servers_start_postgres(struct servers *s, struct hf_err *err)
{
    struct launch l = {
        .args = {NULL, "-D", "postgres", "-k", s->dir, "-c", "listen_addresses=", "-c",
                 "max_connections=200", "-c", "port=5432", "-c", "log_min_messages=fatal", NULL},
        .dir = s->dir,
        .log = "postgres.log",
        .user = launch_user(),
        .out = -1,
        .death_signal = SIGQUIT, /* ends PostgreSQL and its processes at once */
    };
    if (!make_cluster(s, err))
        return false;
    if (!launch_find("postgres", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "postgres is not in PATH");
        return false;
    }
    (void)snprintf(s->postgres.url, sizeof s->postgres.url,
                   "postgres://holdfast@/postgres?host=%s&port=5432", s->dir);
    s->postgres.pid = launch_start(&l);
    return await(&s->postgres, postgres_answers, &l, "PostgreSQL", err);
}

/* ---- Redis ---- */

static bool redis_answers(const void *url)
{
    redisContext *redis = redisConnectUnix((const char *)url + strlen("unix:"));
    redisReply *reply = redis && !redis->err ? redisCommand(redis, "PING") : NULL;
    bool good = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return good;
}

bool servers_start_redis(struct servers *s, struct hf_err *err)
{
    char socket[96];
    (void)snprintf(socket, sizeof socket, "%s/redis.sock", s->dir);
    struct launch l = {
        .args = {NULL, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--save",
                 "", "--appendonly", "no", "--dir", s->dir, NULL},
        .dir = s->dir,
        .log = "redis.log",
        .user = launch_user(),
        .out = -1,
        .death_signal = SIGKILL,
    };
    if (!launch_find("redis-server", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "redis-server is not in PATH");
        return false;
    }
    (void)snprintf(s->redis.url, sizeof s->redis.url, "unix:%s", socket);
    s->redis.pid = launch_start(&l);
    return await(&s->redis, redis_answers, &l, "Redis", err);
}

/* ---- holdfastd ---- */

/* The first line that holdfastd prints is "holdfastd listening on http://...". */
static bool read_url(int fd, char ret[SERVER_URL_SIZE])
{
    char line[512] = "";
    FILE *in = fdopen(fd, "r");
    bool good = in && fgets(line, sizeof line, in) &&
                sscanf(line, "holdfastd listening on %255s", ret) == 1;
    if (in)
        (void)fclose(in);
    else
        (void)close(fd);
    return good;
}

bool servers_start_holdfastd(struct servers *s, const char *ledger, const char *gate,
                             struct hf_err *err)
{
    int ends[2];
    char data[96], ledger_text[1024], gate_text[1024], *environment[LAUNCH_ENVIRONMENT_MAX];
    (void)snprintf(data, sizeof data, "%s/holdfastd", s->dir);
    (void)snprintf(ledger_text, sizeof ledger_text, "HOLDFAST_LEDGER=%s", ledger ? ledger : "");
    (void)snprintf(gate_text, sizeof gate_text, "HOLDFAST_GATE=%s", gate ? gate : "");
    /* URLs are no arguments, because they may contain passwords.  The variables of this process
     * are meant for another holdfastd. */
    char *more[3] = {NULL};
    size_t n = 0;
    if (ledger)
        more[n++] = ledger_text;
    if (gate)
        more[n++] = gate_text;
    launch_environment("HOLDFAST_", more, environment);
    struct launch l = {
        .args = {NULL, "--listen", "127.0.0.1:0", "--data", data, "--log-level", "warn", NULL},
        .dir = s->dir,
        .log = "holdfastd.log",
        .environment = environment,
        .death_signal = SIGKILL,
    };
    if (!launch_find_holdfastd(l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "holdfastd is not beside this program");
        return false;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "pipe: %s", strerror(errno));
        return false;
    }
    l.out = ends[1];
    s->holdfastd.pid = launch_start(&l);
    (void)close(ends[1]);
    return (read_url(ends[0], s->holdfastd.url) && s->holdfastd.pid > 0) ||
           launch_fail(&l, "holdfastd", err);
}
