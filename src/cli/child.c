/* See child.h.  The order of starting is what makes it safe: the command waits on a pipe until the
 * monitor knows its group and the terminal is its own, and ends itself if we die before that.
 *
 * Losing.  The lock is watched in three ways: its file (the library knows), its deadline (nobody
 * could tell us), the cap.  The first step of on_loss comes at once when the loss is known, and at
 * the deadline minus the grace when it is not; the last, SIGKILL, before the deadline, which itself
 * lies before the moment at which another can be granted the lock. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/common.h"

#define N_VARIABLES 3

/* ---- starting ---- */

struct start {
    int go[2];    /* a byte: run; end of file: we are dead */
    int error[2]; /* errno of a failed exec; end of file: it runs */
    char **environment;
    char variables[N_VARIABLES][512];
    pid_t parent;
};

/* The caller's variables but for ours, and ours.  Not setenv: the library's threads may be reading
 * the environment. */
static void make_environment(struct start *s, struct hf_lock *lock)
{
    snprintf(s->variables[0], sizeof s->variables[0], "HOLDFAST_FENCE=%" PRId64,
             hf_lock_fence(lock));
    snprintf(s->variables[1], sizeof s->variables[1], "HOLDFAST_LOCK_NAME=%s", hf_lock_name(lock));
    snprintf(s->variables[2], sizeof s->variables[2], "HOLDFAST_DEADLINE_MS=%" PRId64,
             hf_lock_deadline_ms(lock));
    size_t n = 0, used = 0;
    while (environ[n])
        n++;
    s->environment = hf_alloc((n + N_VARIABLES + 1) * sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        bool ours = false;
        for (int k = 0; k < N_VARIABLES; k++) {
            size_t name_len = strcspn(s->variables[k], "=") + 1;
            ours |= strncmp(environ[i], s->variables[k], name_len) == 0;
        }
        if (!ours)
            s->environment[used++] = environ[i];
    }
    for (int k = 0; k < N_VARIABLES; k++)
        s->environment[used++] = s->variables[k];
}

/* In the child of a process with threads: nothing here allocates or locks. */
static _Noreturn void become_command(const struct child *c, const struct start *s)
{
    setpgid(0, 0);
    if (c->ending.on_loss != LOSS_WARN)
        prctl(PR_SET_PDEATHSIG, c->ending.on_loss == LOSS_KILL ? SIGKILL : SIGTERM);
    char go;
    close(s->go[1]);
    if (getppid() != s->parent || read(s->go[0], &go, 1) != 1)
        _exit(EXIT_NOT_RUNNABLE);
    sigprocmask(SIG_SETMASK, &c->signals->before, NULL);
    execvpe(c->argv[0], c->argv, s->environment);
    int error = errno;
    if (write(s->error[1], &error, sizeof error) < 0)
        _exit(EXIT_NOT_FOUND);
    _exit(EXIT_NOT_RUNNABLE);
}

static void close_both(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* Whether the terminal is ours to hand over: we are in its foreground. */
static bool has_terminal(void) { return isatty(0) && tcgetpgrp(0) == getpgrp(); }

static bool start(struct child *c, bool *ret_terminal)
{
    struct start s = {.go = {-1, -1}, .error = {-1, -1}, .parent = getpid()};
    bool ok = pipe2(s.go, O_CLOEXEC) == 0 && pipe2(s.error, O_CLOEXEC) == 0;
    if (ok) {
        make_environment(&s, c->lock);
        c->pid = fork();
        if (c->pid == 0)
            become_command(c, &s);
        ok = c->pid > 0;
    }
    if (!ok) {
        cli_say(c->command, "cannot start the command: %s", strerror(errno));
        goto out;
    }
    setpgid(c->pid, c->pid);
    monitor_set_group(c->monitor, c->pid);
    *ret_terminal = has_terminal() && tcsetpgrp(0, c->pid) == 0;
    close(s.error[1]);
    s.error[1] = -1;
    ok = write(s.go[1], "", 1) == 1;
    if (read(s.error[0], &c->exec_errno, sizeof c->exec_errno) != (ssize_t)sizeof c->exec_errno)
        c->exec_errno = 0;
out:
    close_both(s.go);
    close_both(s.error);
    free(s.environment);
    return ok;
}

/* ---- running ---- */

enum phase { RUNS, WARNED, ENDING, KILLED };

struct watch {
    struct child *c;
    enum phase phase;
    bool terminal; /* handed over */
    bool exited;
    int64_t deadline_ms, kill_at_ms;
    int timer;
};

static void look_at_deadline(struct watch *w)
{
    int64_t deadline = hf_lock_deadline_ms(w->c->lock);
    w->deadline_ms = deadline < w->c->cap_ms ? deadline : w->c->cap_ms;
    monitor_set_deadline(w->c->monitor, w->deadline_ms);
}

static void lose(struct watch *w, const char *why)
{
    static const char *const what[] = {"ending the command", "killing the command",
                                       "the command goes on without it"};
    struct child *c = w->c;
    c->lost = true;
    cli_say(c->command, "the lock on %s %s; %s", hf_lock_name(c->lock), why,
            what[c->ending.on_loss]);
    if (c->ending.on_loss == LOSS_WARN) {
        w->phase = WARNED;
        return;
    }
    monitor_set_ending(c->monitor);
    ending_begin(&c->ending, c->pid);
    int64_t graceful = cli_now_ms() + c->ending.grace_ms;
    int64_t last = ending_kill_at_ms(&c->ending, w->deadline_ms);
    w->kill_at_ms = graceful < last ? graceful : last;
    w->phase = c->ending.on_loss == LOSS_KILL ? KILLED : ENDING;
}

static void step(struct watch *w, bool told)
{
    struct child *c = w->c;
    look_at_deadline(w);
    int64_t now = cli_now_ms();
    bool warn = c->ending.on_loss == LOSS_WARN;
    int64_t begin = warn ? w->deadline_ms : ending_begin_at_ms(&c->ending, w->deadline_ms);
    if (w->phase == RUNS && (told || !hf_lock_held(c->lock)))
        lose(w, "is lost");
    else if (w->phase == RUNS && now >= begin)
        lose(w, w->deadline_ms == c->cap_ms ? "has been held for --max-hold"
                                            : "runs out and cannot be renewed");
    else if (w->phase == ENDING && now >= w->kill_at_ms) {
        kill(-c->pid, SIGKILL);
        w->phase = KILLED;
    }
}

/* If we are in the terminal's foreground, put the command there. */
static void hand_terminal(struct watch *w)
{
    if (has_terminal())
        w->terminal = tcsetpgrp(0, w->c->pid) == 0;
}

/* The command was stopped from the terminal: so are we, or the shell would wait for us for ever.
 * Nobody renews meanwhile; the monitor ends the command if that takes too long. */
static void stop_with_it(struct watch *w)
{
    if (w->terminal)
        tcsetpgrp(0, getpgrp());
    w->terminal = false;
    raise(SIGSTOP);
    hand_terminal(w);
    kill(-w->c->pid, SIGCONT);
}

/* Did the terminal stop it?  In the background it does so to readers. */
static bool stopped_by_terminal(const struct watch *w, const siginfo_t *info)
{
    return w->terminal || info->si_status == SIGTTIN || info->si_status == SIGTTOU;
}

static void hear(struct watch *w, int signo, bool kernel)
{
    struct child *c = w->c;
    siginfo_t info = {0};
    switch (signo) {
    case SIGCHLD:
        if (monitor_gone(c->monitor)) {
            cli_say(c->command, "the monitor has died; go on without");
            c->monitor->pid = -1;
        }
        if (waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid &&
            stopped_by_terminal(w, &info))
            stop_with_it(w);
        info.si_pid = 0;
        /* Left as it is for now: as long as it is not waited for, its group's number is its own. */
        if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
            w->exited = true;
        break;
    case SIGTSTP:
        kill(-c->pid, SIGTSTP);
        if (kernel)
            stop_with_it(w);
        break;
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
        c->asked_to_end = true;
        kill(-c->pid, signo);
        break;
    case SIGCONT:
        hand_terminal(w); /* `fg` of a job that began in the background */
        kill(-c->pid, SIGCONT);
        break;
    default:
        kill(-c->pid, signo);
    }
}

static void sleep_until_something(struct watch *w, bool *ret_told)
{
    struct child *c = w->c;
    int64_t now = cli_now_ms(), left = w->deadline_ms - now;
    int64_t next = now + (left / 4 < 5 ? 5 : left / 4 > 1000 ? 1000 : left / 4);
    if (w->phase == ENDING && w->kill_at_ms < next)
        next = w->kill_at_ms;
    if (w->phase == RUNS && ending_begin_at_ms(&c->ending, w->deadline_ms) < next)
        next = ending_begin_at_ms(&c->ending, w->deadline_ms);
    if (next <= now)
        next = now + 1;
    struct itimerspec when = {
        .it_value = {.tv_sec = next / 1000, .tv_nsec = (next % 1000) * 1000000}};
    timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL);
    struct pollfd fds[] = {{.fd = c->signals->fd, .events = POLLIN},
                           {.fd = w->timer, .events = POLLIN},
                           {.fd = w->phase == RUNS ? hf_lock_fd(c->lock) : -1, .events = POLLIN}};
    if (poll(fds, 3, -1) <= 0)
        return;
    uint64_t ticks;
    if (fds[1].revents && read(w->timer, &ticks, sizeof ticks) < 0)
        return;
    *ret_told = fds[2].revents != 0;
}

/* Others of its group may be busy with their SIGTERM still. */
static void end_the_rest(struct watch *w)
{
    pid_t group = w->c->pid;
    while (w->phase == ENDING && kill(-group, 0) == 0) {
        if (cli_now_ms() >= w->kill_at_ms) {
            kill(-group, SIGKILL);
            break;
        }
        poll(NULL, 0, 5);
    }
}

bool child_run(struct child *c)
{
    struct watch w = {.c = c, .timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (w.timer < 0)
        return false;
    look_at_deadline(&w);
    if (!start(c, &w.terminal)) {
        monitor_set_group(c->monitor, 0);
        close(w.timer);
        return false;
    }
    while (!w.exited) {
        bool told = false, kernel = false;
        int signo = signals_next(c->signals, &kernel);
        if (signo)
            hear(&w, signo, kernel);
        else
            sleep_until_something(&w, &told);
        if (!w.exited)
            step(&w, told);
    }
    if (w.phase == KILLED || w.phase == ENDING) {
        waitpid(c->pid, &c->status, 0);
        end_the_rest(&w);
        monitor_set_group(c->monitor, 0);
    } else {
        monitor_set_group(c->monitor, 0);
        waitpid(c->pid, &c->status, 0);
    }
    /* We may have been stopped, and learn only now. */
    c->lost |= monitor_acted(c->monitor) || !hf_lock_held(c->lock);
    if (w.terminal)
        tcsetpgrp(0, getpgrp());
    close(w.timer);
    return true;
}

int child_exit_code(const struct child *c)
{
    if (c->exec_errno)
        return c->exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
    if (WIFSIGNALED(c->status))
        return EXIT_SIGNAL + WTERMSIG(c->status);
    return WEXITSTATUS(c->status);
}
