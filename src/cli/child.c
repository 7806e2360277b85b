/* See child.h.  Main thread.
 *
 * Starting is safe because of its order: the child waits on a pipe until the monitor knows its
 * group and it has the terminal, and exits if this process dies before that.
 *
 * A lock can end in three ways, and child_run watches for each: the library says that it is
 * lost (hf_lock_fd), the deadline comes near because renewals fail, or --max-hold has passed.  When
 * the loss is known, the first step of --on-loss follows at once; otherwise it comes at the
 * deadline minus the grace.  The last step, SIGKILL, comes before the deadline, which itself lies
 * before the moment at which another holder can be granted the lock. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "base/wait.h"
#include "cli/common.h"

#define GROUP_POLL_US 5000

/* ---- starting ---- */

struct start {
    int go[2];    /* a byte tells the child to go on, end of file that this process has died */
    int error[2]; /* errno of a failed exec, or end of file once the command runs */
    char **environment;
    pid_t parent;
};

/* Runs in the forked child.  This process has threads, so nothing here may allocate or lock. */
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

/* Returns whether this process is in the foreground of its terminal. */
static bool has_terminal(void) { return isatty(0) && tcgetpgrp(0) == getpgrp(); }

static bool start_command(struct child *c, bool *ret_gave_terminal)
{
    struct start s = {.go = {-1, -1}, .error = {-1, -1}, .parent = getpid()};
    bool ok = pipe2(s.go, O_CLOEXEC) == 0 && pipe2(s.error, O_CLOEXEC) == 0;
    if (ok) {
        s.environment = held_environment(c->set, c->slots);
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
    *ret_gave_terminal = has_terminal() && tcsetpgrp(0, c->pid) == 0;
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

enum phase {
    RUNNING,
    WARNED, /* the lock is lost, and --on-loss warn lets the command run on */
    ENDING, /* SIGTERM was sent */
    KILLED  /* SIGKILL was sent */
};

struct child_watch {
    struct child *c;
    enum phase phase;
    bool gave_terminal; /* the command's group is in the foreground */
    bool exited;
    int64_t deadline_ms; /* the earliest of the locks, or of --max-hold */
    int64_t kill_at_ms;  /* while ENDING */
    int timer;
};

static void update_deadline(struct child_watch *w)
{
    int64_t deadline = held_deadline_ms(w->c->set);
    w->deadline_ms = deadline < w->c->cap_ms ? deadline : w->c->cap_ms;
    monitor_set_deadline(w->c->monitor, w->deadline_ms);
}

/* Begins what --on-loss says. */
static void begin_ending(struct child_watch *w, const char *why)
{
    static const char *const consequence[] = {"ending the command", "killing the command",
                                              "the command goes on without it"};
    struct child *c = w->c;
    c->lost = true;
    cli_say(c->command, "the lock on %s %s; %s", held_weakest(c->set), why,
            consequence[c->ending.on_loss]);
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

/* Acts on the state of the locks and of the ending.  `is_lost`: the library says so. */
static void check_lock(struct child_watch *w, bool is_lost)
{
    struct child *c = w->c;
    update_deadline(w);
    int64_t now = cli_now_ms();
    bool warn = c->ending.on_loss == LOSS_WARN;
    int64_t begin = warn ? w->deadline_ms : ending_begin_at_ms(&c->ending, w->deadline_ms);
    if (w->phase == RUNNING && (is_lost || !held_all(c->set)))
        begin_ending(w, "is lost");
    else if (w->phase == RUNNING && now >= begin)
        begin_ending(w, w->deadline_ms == c->cap_ms ? "has been held for --max-hold"
                                                    : "runs out and cannot be renewed");
    else if (w->phase == ENDING && now >= w->kill_at_ms) {
        kill(-c->pid, SIGKILL);
        w->phase = KILLED;
    }
}

/* Puts the command into the foreground if this process is there. */
static void give_terminal(struct child_watch *w)
{
    if (has_terminal())
        w->gave_terminal = tcsetpgrp(0, w->c->pid) == 0;
}

/* The command was stopped from the terminal.  This process stops, too, or the shell would wait for
 * it for ever.  The lock is not renewed meanwhile; the monitor ends the command if that takes too
 * long. */
static void stop_with_command(struct child_watch *w)
{
    if (w->gave_terminal)
        tcsetpgrp(0, getpgrp());
    w->gave_terminal = false;
    raise(SIGSTOP);
    give_terminal(w);
    kill(-w->c->pid, SIGCONT);
}

/* Returns whether the terminal stopped the command, which it also does to background jobs that
 * read. */
static bool stopped_by_terminal(const struct child_watch *w, const siginfo_t *info)
{
    return w->gave_terminal || info->si_status == SIGTTIN || info->si_status == SIGTTOU;
}

static void handle_sigchld(struct child_watch *w)
{
    struct child *c = w->c;
    siginfo_t info = {0};
    if (monitor_gone(c->monitor)) {
        cli_say(c->command, "the monitor has died; going on without it");
        c->monitor->pid = -1;
    }
    if (waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid &&
        stopped_by_terminal(w, &info))
        stop_with_command(w);
    info.si_pid = 0;
    /* The command is not reaped yet, because that would free the number of its group. */
    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
        w->exited = true;
}

static void handle_signal(struct child_watch *w, int signo, bool from_terminal)
{
    struct child *c = w->c;
    switch (signo) {
    case SIGCHLD:
        handle_sigchld(w);
        break;
    case SIGTSTP:
        kill(-c->pid, SIGTSTP);
        if (from_terminal)
            stop_with_command(w);
        break;
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
        c->asked_to_end = true;
        kill(-c->pid, signo);
        break;
    case SIGCONT:
        give_terminal(w); /* after `fg` of a job that began in the background */
        kill(-c->pid, SIGCONT);
        break;
    default:
        kill(-c->pid, signo);
    }
}

/* Waits for a signal, for the loss of a lock (then *ret_is_lost), or until check_lock has
 * something to do.  At least every quarter of the time that is left, and every second, it returns
 * so that a renewal's new deadline is seen. */
static void wait_for_event(struct child_watch *w, bool *ret_is_lost)
{
    struct child *c = w->c;
    int64_t now = cli_now_ms(), left = w->deadline_ms - now;
    int64_t next = now + (left / 4 < 5 ? 5 : left / 4 > 1000 ? 1000 : left / 4);
    if (w->phase == ENDING && w->kill_at_ms < next)
        next = w->kill_at_ms;
    if (w->phase == RUNNING && ending_begin_at_ms(&c->ending, w->deadline_ms) < next)
        next = ending_begin_at_ms(&c->ending, w->deadline_ms);
    if (next <= now)
        next = now + 1;
    wait_timer_set(w->timer, next * 1000);
    struct pollfd fds[2 + HELD_MAX] = {{.fd = c->signals->fd, .events = POLLIN},
                                       {.fd = w->timer, .events = POLLIN}};
    size_t n = 2 + (w->phase == RUNNING ? held_files(c->set, fds + 2) : 0);
    if (wait_files(fds, (nfds_t)n, -1) <= 0)
        return;
    if (fds[1].revents)
        wait_timer_clear(w->timer);
    for (size_t i = 2; i < n; i++)
        *ret_is_lost |= fds[i].revents != 0;
}

/* The command has ended after its SIGTERM; other processes of its group may still be busy with
 * theirs. */
static void end_rest_of_group(struct child_watch *w)
{
    pid_t group = w->c->pid;
    while (w->phase == ENDING && kill(-group, 0) == 0) {
        if (cli_now_ms() >= w->kill_at_ms) {
            kill(-group, SIGKILL);
            break;
        }
        wait_sleep_us(GROUP_POLL_US);
    }
}

bool child_run(struct child *c)
{
    struct child_watch w = {.c = c, .timer = wait_timer_new()};
    if (w.timer < 0) {
        cli_say(c->command, "cannot start the command: %s", strerror(errno));
        return false;
    }
    update_deadline(&w);
    if (!start_command(c, &w.gave_terminal)) {
        monitor_set_group(c->monitor, 0);
        close(w.timer);
        return false;
    }
    while (!w.exited) {
        bool is_lost = false, from_terminal = false;
        int signo = signals_next(c->signals, &from_terminal);
        if (signo)
            handle_signal(&w, signo, from_terminal);
        else
            wait_for_event(&w, &is_lost);
        if (!w.exited)
            check_lock(&w, is_lost);
    }
    if (w.phase == KILLED || w.phase == ENDING) {
        waitpid(c->pid, &c->status, 0);
        end_rest_of_group(&w);
        monitor_set_group(c->monitor, 0);
    } else {
        monitor_set_group(c->monitor, 0);
        waitpid(c->pid, &c->status, 0);
    }
    /* If this process was stopped meanwhile, it learns of the loss only now. */
    c->lost |= monitor_acted(c->monitor) || !held_all(c->set);
    if (w.gave_terminal)
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
