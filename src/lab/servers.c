/* See servers.h.  A server is a child of this process with PR_SET_PDEATHSIG.  The keeper, another
 * child, reads from a pipe whose other end only this process has, and removes the directory when
 * the pipe is closed.  Main thread. */
#include "lab/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"

#define PATH_SIZE 512
#define START_MS_MAX 30000
#define STOP_MS_MAX 10000
#define POLL_MS 10
#define ARGS_MAX 16
#define ENVIRONMENT_MAX 1024

static void pause_before_next_look(void) { wait_sleep_us(POLL_MS * 1000); }

/* ---- programs ---- */

static bool find_in(const char *dir, size_t len, const char *program, char ret[PATH_SIZE])
{
    char pattern[PATH_SIZE];
    (void)snprintf(ret, PATH_SIZE, "%.*s/%s", (int)len, dir, program);
    if (access(ret, X_OK) == 0)
        return true;
    (void)snprintf(pattern, sizeof pattern, "%.*s/../lib/postgresql/*/bin/%s", (int)len, dir,
                   program);
    glob_t found = {0};
    bool any = glob(pattern, 0, NULL, &found) == 0;
    if (any)
        (void)snprintf(ret, PATH_SIZE, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return any;
}

static bool find_program(const char *program, char ret[PATH_SIZE])
{
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        if (len && find_in(at, len, program, ret))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

bool servers_have_postgres(void)
{
    char path[PATH_SIZE];
    return find_program("initdb", path) && find_program("postgres", path);
}

bool servers_have_redis(void)
{
    char path[PATH_SIZE];
    return find_program("redis-server", path);
}

/* The user that PostgreSQL and Redis run as; NULL for the user of this process. */
static const struct passwd *server_user(void)
{
    if (getuid() != 0)
        return NULL;
    const struct passwd *user = getpwnam("postgres");
    return user ? user : getpwnam("nobody");
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
    for (int ms = 0; access(dir, F_OK) == 0 && ms < STOP_MS_MAX; ms += POLL_MS) {
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        pause_before_next_look();
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
    const struct passwd *user = server_user();
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

struct launch {
    char path[PATH_SIZE];
    const char *args[ARGS_MAX]; /* [0] is the path */
    const char *dir;            /* its working directory */
    const char *log;            /* the file for its stderr, in `dir` */
    const struct passwd *user;  /* NULL for the user of this process */
    int out;                    /* its stdout; -1 for the log */
    int death_signal;           /* sent to it when this process dies */
    char **environment;         /* NULL for that of this process */
};

/* Runs in the child.  Changing the user clears the death signal, so that comes first. */
_Noreturn static void exec_server(const struct launch *l, pid_t parent)
{
    if (l->user &&
        (setgroups(0, NULL) != 0 || setgid(l->user->pw_gid) != 0 || setuid(l->user->pw_uid) != 0))
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, l->death_signal);
    if (getppid() != parent)
        _exit(126);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* ^C reaches this program only, which stops the servers in order */
    if (chdir(l->dir) != 0)
        _exit(126);
    int in = open("/dev/null", O_RDONLY);
    int log = open(l->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (dup2(in, 0) < 0 || dup2(log, 2) < 0 || dup2(l->out >= 0 ? l->out : log, 1) < 0)
        _exit(126);
    execve(l->path, (char *const *)(uintptr_t)l->args, l->environment ? l->environment : environ);
    _exit(127);
}

static pid_t launch(struct launch *l)
{
    pid_t parent = getpid();
    l->args[0] = l->path;
    pid_t pid = fork();
    if (pid == 0)
        exec_server(l, parent);
    return pid;
}

/* Copies the last line of a log, as the reason for a failure. */
static void last_line(const char *dir, const char *log, char ret[160])
{
    char path[PATH_SIZE], line[160];
    (void)snprintf(path, sizeof path, "%s/%s", dir, log);
    (void)snprintf(ret, 160, "its log is empty");
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            (void)snprintf(ret, 160, "%s", line);
    }
    if (in)
        (void)fclose(in);
}

static bool fail_with_log(const struct launch *l, const char *what, struct hf_err *err)
{
    char why[160];
    last_line(l->dir, l->log, why);
    (void)hf_err_set(err, HF_UNAVAILABLE, "%s: %s", what, why);
    return false;
}

/* Returns false if the server has ended or does not answer in time. */
static bool wait_until_it_answers(struct server *s, bool (*answers)(const char *url))
{
    for (int ms = 0; ms < START_MS_MAX; ms += POLL_MS) {
        if (answers(s->url))
            return true;
        if (waitpid(s->pid, NULL, WNOHANG) != 0) {
            s->pid = 0;
            return false;
        }
        pause_before_next_look();
    }
    return false;
}

void servers_stop(struct server *s)
{
    if (s->pid <= 0)
        return;
    (void)kill(s->pid, SIGINT);
    bool gone = false;
    for (int ms = 0; !gone && ms < STOP_MS_MAX; ms += POLL_MS) {
        gone = waitpid(s->pid, NULL, WNOHANG) != 0;
        if (!gone)
            pause_before_next_look();
    }
    if (!gone) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

/* ---- PostgreSQL ---- */

static bool postgres_answers(const char *url) { return PQping(url) == PQPING_OK; }

static bool make_cluster(const struct servers *s, struct hf_err *err)
{
    struct launch l = {
        .args = {NULL, "-D", "postgres", "-U", "holdfast", "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-sync", NULL},
        .dir = s->dir,
        .log = "initdb.log",
        .user = server_user(),
        .out = -1,
        .death_signal = SIGKILL,
    };
    int status;
    if (!find_program("initdb", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "initdb is not in PATH");
        return false;
    }
    pid_t pid = launch(&l);
    return (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0) ||
           fail_with_log(&l, "initdb", err);
}

bool servers_start_postgres(struct servers *s, struct hf_err *err)
{
    struct launch l = {
        .args = {NULL, "-D", "postgres", "-k", s->dir, "-c", "listen_addresses=", "-c",
                 "max_connections=200", "-c", "port=5432", "-c", "log_min_messages=fatal", NULL},
        .dir = s->dir,
        .log = "postgres.log",
        .user = server_user(),
        .out = -1,
        .death_signal = SIGQUIT, /* ends PostgreSQL and its processes at once */
    };
    if (!make_cluster(s, err))
        return false;
    if (!find_program("postgres", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "postgres is not in PATH");
        return false;
    }
    (void)snprintf(s->postgres.url, sizeof s->postgres.url,
                   "postgres://holdfast@/postgres?host=%s&port=5432", s->dir);
    s->postgres.pid = launch(&l);
    return (s->postgres.pid > 0 && wait_until_it_answers(&s->postgres, postgres_answers)) ||
           fail_with_log(&l, "PostgreSQL", err);
}

/* ---- Redis ---- */

static bool redis_answers(const char *url)
{
    redisContext *redis = redisConnectUnix(url + strlen("unix:"));
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
        .user = server_user(),
        .out = -1,
        .death_signal = SIGKILL,
    };
    if (!find_program("redis-server", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "redis-server is not in PATH");
        return false;
    }
    (void)snprintf(s->redis.url, sizeof s->redis.url, "unix:%s", socket);
    s->redis.pid = launch(&l);
    return (s->redis.pid > 0 && wait_until_it_answers(&s->redis, redis_answers)) ||
           fail_with_log(&l, "Redis", err);
}

/* ---- holdfastd ---- */

static bool find_holdfastd(char ret[PATH_SIZE])
{
    ssize_t len = readlink("/proc/self/exe", ret, PATH_SIZE - sizeof "/holdfastd");
    if (len <= 0)
        return false;
    ret[len] = '\0';
    char *slash = strrchr(ret, '/');
    memcpy(slash, "/holdfastd", sizeof "/holdfastd");
    return access(ret, X_OK) == 0;
}

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

/* The environment of this process without the variables meant for another holdfastd, and with these
 * two.  URLs are passed here and not as arguments because they may contain passwords. */
static void write_environment(char *out[ENVIRONMENT_MAX], char *ledger, char *gate)
{
    size_t n = 0;
    for (char **at = environ; *at && n < ENVIRONMENT_MAX - 3; at++)
        if (strncmp(*at, "HOLDFAST_", 9) != 0)
            out[n++] = *at;
    if (ledger)
        out[n++] = ledger;
    if (gate)
        out[n++] = gate;
    out[n] = NULL;
}

bool servers_start_holdfastd(struct servers *s, const char *ledger, const char *gate,
                             struct hf_err *err)
{
    int ends[2];
    char data[96], ledger_text[1024], gate_text[1024], *environment[ENVIRONMENT_MAX];
    (void)snprintf(data, sizeof data, "%s/holdfastd", s->dir);
    (void)snprintf(ledger_text, sizeof ledger_text, "HOLDFAST_LEDGER=%s", ledger ? ledger : "");
    (void)snprintf(gate_text, sizeof gate_text, "HOLDFAST_GATE=%s", gate ? gate : "");
    write_environment(environment, ledger ? ledger_text : NULL, gate ? gate_text : NULL);
    struct launch l = {
        .args = {NULL, "--listen", "127.0.0.1:0", "--data", data, "--log-level", "warn", NULL},
        .dir = s->dir,
        .log = "holdfastd.log",
        .environment = environment,
        .death_signal = SIGKILL,
    };
    if (!find_holdfastd(l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "holdfastd is not beside this program");
        return false;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "pipe: %s", strerror(errno));
        return false;
    }
    l.out = ends[1];
    s->holdfastd.pid = launch(&l);
    (void)close(ends[1]);
    return (read_url(ends[0], s->holdfastd.url) && s->holdfastd.pid > 0) ||
           fail_with_log(&l, "holdfastd", err);
}
