/* See postgres_server.h. */
#include "support/postgres_server.h"

#include <fcntl.h>
#include <glob.h>
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

#include "base/status.h"

/* Where Debian keeps them, else on the PATH. */
static void program_path(const char *name, char *ret, size_t size)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "/usr/lib/postgresql/*/bin/%s", name);
    bool any = glob(pattern, 0, NULL, &found) == 0;
    snprintf(ret, size, "%s", any ? found.gl_pathv[found.gl_pathc - 1] : name);
    globfree(&found);
}

static struct passwd *packaged_user(void) { return geteuid() == 0 ? getpwnam("postgres") : NULL; }

/* args[0] is a program's name and becomes its path: initdb finds postgres beside itself. */
static pid_t spawn(const struct postgres_server *s, const char **args)
{
    char path[512], log[128];
    program_path(args[0], path, sizeof path);
    snprintf(log, sizeof log, "%s/log", s->dir);
    const struct passwd *user = packaged_user();
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid > 0)
        return pid;
    if (user && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setuid, which clears it */
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(s->dir) != 0)
        _exit(126);
    args[0] = path;
    execvp(path, (char *const *)(uintptr_t)args);
    _exit(127);
}

static bool answers(const struct postgres_server *s)
{
    PGconn *pg = PQconnectdb(s->url);
    bool good = PQstatus(pg) == CONNECTION_OK;
    PQfinish(pg);
    return good;
}

bool postgres_server_start(struct postgres_server *s)
{
    char data[128];
    int status;
    snprintf(s->dir, sizeof s->dir, "/tmp/holdfast-postgres-XXXXXX");
    hf_check(mkdtemp(s->dir));
    const struct passwd *user = packaged_user();
    hf_check(!user || chown(s->dir, user->pw_uid, user->pw_gid) == 0);
    snprintf(data, sizeof data, "%s/data", s->dir);
    snprintf(s->url, sizeof s->url, "postgres://holdfast@/postgres?host=%s", s->dir);

    const char *initdb[] = {"initdb", "-D", data, "-U",   "holdfast", "-A",
                            "trust",  "-N", "-E", "UTF8", NULL};
    pid_t pid = spawn(s, initdb);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return false;
    const char *postgres[] = {"postgres",          "-D", data,        "-k", s->dir, "-c",
                              "listen_addresses=", "-c", "fsync=off", NULL};
    s->pid = spawn(s, postgres);
    for (int i = 0; i < 1000; i++) {
        if (answers(s))
            return true;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        usleep(20000);
    }
    return false;
}

void postgres_server_stop(struct postgres_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGINT); /* a fast shutdown: its children go with it */
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", s->dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}
