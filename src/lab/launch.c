/* See launch.h.  A child has PR_SET_PDEATHSIG and a process group of its own. */
#include "lab/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
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

#define POLL_MS 10

void launch_pause(void) { wait_sleep_us(POLL_MS * 1000); }

/* ---- finding ---- */

static bool find_glob(const char *dir, size_t len, const char *pattern, char ret[LAUNCH_PATH_SIZE])
{
    char whole[LAUNCH_PATH_SIZE];
    glob_t found = {0};
    (void)snprintf(whole, sizeof whole, "%.*s/%s", (int)len, dir, pattern);
    bool any = glob(whole, 0, NULL, &found) == 0;
    if (any)
        (void)snprintf(ret, LAUNCH_PATH_SIZE, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return any;
}

static bool find_program_in(const char *dir, size_t len, const char *program,
                            char ret[LAUNCH_PATH_SIZE])
{
    char pattern[LAUNCH_PATH_SIZE];
    (void)snprintf(ret, LAUNCH_PATH_SIZE, "%.*s/%s", (int)len, dir, program);
    if (access(ret, X_OK) == 0)
        return true;
    (void)snprintf(pattern, sizeof pattern, "../lib/postgresql/*/bin/%s", program);
    return find_glob(dir, len, pattern, ret);
}

static bool find_in_path(const char *what,
                         bool (*find)(const char *dir, size_t len, const char *what, char *ret),
                         char ret[LAUNCH_PATH_SIZE])
{
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        if (len && find(at, len, what, ret))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

bool launch_find(const char *program, char ret[LAUNCH_PATH_SIZE])
{
    return find_in_path(program, find_program_in, ret);
}

bool launch_find_beside(const char *pattern, char ret[LAUNCH_PATH_SIZE])
{
    return find_in_path(pattern, find_glob, ret);
}

bool launch_find_holdfastd(char ret[LAUNCH_PATH_SIZE])
{
    ssize_t len = readlink("/proc/self/exe", ret, LAUNCH_PATH_SIZE - sizeof "/holdfastd");
    if (len <= 0)
        return false;
    ret[len] = '\0';
    char *slash = strrchr(ret, '/');
    memcpy(slash, "/holdfastd", sizeof "/holdfastd");
    return access(ret, X_OK) == 0;
}

void launch_environment(const char *without, char *const *more, char *ret[LAUNCH_ENVIRONMENT_MAX])
{
    size_t n = 0, n_more = 0;
    while (more[n_more])
        n_more++;
    for (char **at = environ; *at && n + n_more < LAUNCH_ENVIRONMENT_MAX - 1; at++)
        if (strncmp(*at, without, strlen(without)) != 0)
            ret[n++] = *at;
    memcpy(&ret[n], more, (n_more + 1) * sizeof *more);
}

const struct passwd *launch_user(void)
{
    if (getuid() != 0)
        return NULL;
    const struct passwd *user = getpwnam("postgres");
    return user ? user : getpwnam("nobody");
}

/* ---- starting ---- */

/* Runs in the child.  Changing the user clears the death signal, so that comes first. */
_Noreturn static void exec_program(const struct launch *l, pid_t parent)
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

pid_t launch_start(struct launch *l)
{
    pid_t parent = getpid();
    l->args[0] = l->path;
    pid_t pid = fork();
    if (pid == 0)
        exec_program(l, parent);
    return pid;
}

bool launch_run(struct launch *l)
{
    int status;
    pid_t pid = launch_start(l);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool launch_await(pid_t *pid, bool (*answers)(const void *ctx), const void *ctx)
{
    int64_t until_us = wait_now_us() + INT64_C(1000) * LAUNCH_START_MS_MAX;
    while (*pid > 0 && wait_now_us() < until_us) {
        if (answers(ctx))
            return true;
        if (waitpid(*pid, NULL, WNOHANG) != 0)
            *pid = 0;
        else
            launch_pause();
    }
    return false;
}

void launch_stop(pid_t *pid)
{
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGINT);
    bool gone = false;
    for (int ms = 0; !gone && ms < LAUNCH_STOP_MS_MAX; ms += POLL_MS) {
        gone = waitpid(*pid, NULL, WNOHANG) != 0;
        if (!gone)
            launch_pause();
    }
    if (!gone) {
        (void)kill(*pid, SIGKILL);
        (void)waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

/* ---- failing ---- */

void launch_last_line(const char *dir, const char *log, char ret[LAUNCH_LINE_SIZE])
{
    char path[LAUNCH_PATH_SIZE], line[LAUNCH_LINE_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", dir, log);
    (void)snprintf(ret, LAUNCH_LINE_SIZE, "its log is empty");
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            (void)snprintf(ret, LAUNCH_LINE_SIZE, "%s", line);
    }
    if (in)
        (void)fclose(in);
}

bool launch_fail(const struct launch *l, const char *what, struct hf_err *err)
{
    char why[LAUNCH_LINE_SIZE];
    launch_last_line(l->dir, l->log, why);
    (void)hf_err_set(err, HF_UNAVAILABLE, "%s: %s", what, why);
    return false;
}
