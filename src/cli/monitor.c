/* See monitor.h.  The first half of this file runs in the wrapper's main thread.  The second half
 * is all that the monitor does: system calls and the shared page, no library, no allocation. */
#include "cli/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"
#include "cli/common.h"

#define POLL_US 10000

struct monitor_page {
    struct ending ending;
    _Atomic pid_t group;
    _Atomic int64_t deadline_ms;
    _Atomic bool wrapper_is_ending_it;
    _Atomic bool acted; /* the only member that the monitor writes */
};

/* ---- when and how ---- */

static int64_t clamp(int64_t n, int64_t least, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

int64_t ending_kill_at_ms(const struct ending *e, int64_t deadline_ms)
{
    return deadline_ms - clamp(e->grace_ms / 5, 10, 200);
}

int64_t ending_lead_ms(const struct ending *e)
{
    switch (e->on_loss) {
    case LOSS_TERM:
        return e->grace_ms;
    case LOSS_KILL:
        return 2 * clamp(e->grace_ms / 5, 10, 200);
    case LOSS_WARN:
        break;
    }
    return 0;
}

int64_t ending_begin_at_ms(const struct ending *e, int64_t deadline_ms)
{
    return deadline_ms - ending_lead_ms(e);
}

void ending_begin(const struct ending *e, pid_t group)
{
    if (e->on_loss == LOSS_KILL) {
        kill(-group, SIGKILL);
    } else if (e->on_loss == LOSS_TERM) {
        kill(-group, SIGTERM);
        kill(-group, SIGCONT);
    }
}

/* ---- the wrapper's side ---- */

static _Noreturn void watch(struct monitor_page *page, int pipe_fd, int timer);

static bool become_monitor(struct monitor_page *page, int pipe_fd)
{
    setsid();
    prctl(PR_SET_NAME, "holdfast-watch");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int timer = wait_timer_new();
    if (null < 0 || timer < 0)
        return false;
    /* The monitor closes the wrapper's standard files, so that their readers see the end of file
     * when the command and the wrapper are gone.  signals_block has made sure that 0 to 2 were
     * open, so none of the files opened above has these numbers. */
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    unsigned first = (unsigned)(pipe_fd < timer ? pipe_fd : timer);
    unsigned second = (unsigned)(pipe_fd < timer ? timer : pipe_fd);
    if (first > 3)
        close_range(3, first - 1, 0);
    if (second > first + 1)
        close_range(first + 1, second - 1, 0);
    close_range(second + 1, ~0U, 0);
    watch(page, pipe_fd, timer);
}

bool monitor_start(struct monitor *m, const struct ending *ending)
{
    *m = (struct monitor){.pipe = -1};
    struct monitor_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    page->ending = *ending;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        munmap(page, sizeof *page);
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        become_monitor(page, ends[0]);
        _exit(1);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        munmap(page, sizeof *page);
        return false;
    }
    *m = (struct monitor){.page = page, .pipe = ends[1], .pid = pid};
    return true;
}

void monitor_set_group(struct monitor *m, pid_t group)
{
    if (group) {
        atomic_store(&m->page->wrapper_is_ending_it, false);
        atomic_store(&m->page->acted, false);
    }
    atomic_store(&m->page->group, group);
    if (write(m->pipe, "", 1) != 1) /* wakes the monitor to read the page again */
        return;                     /* it has died, which monitor_gone finds out */
}

void monitor_set_deadline(struct monitor *m, int64_t deadline_ms)
{
    atomic_store(&m->page->deadline_ms, deadline_ms);
}

void monitor_set_ending(struct monitor *m) { atomic_store(&m->page->wrapper_is_ending_it, true); }

bool monitor_acted(const struct monitor *m) { return atomic_load(&m->page->acted); }

bool monitor_gone(struct monitor *m)
{
    if (m->pid > 0 && waitpid(m->pid, NULL, WNOHANG) == m->pid)
        m->pid = 0;
    return m->pid == 0;
}

void monitor_stop(struct monitor *m)
{
    if (!m->page)
        return;
    atomic_store(&m->page->group, 0);
    close(m->pipe);
    while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    munmap(m->page, sizeof *m->page);
    *m = (struct monitor){.pipe = -1};
}

/* ---- the monitor's side ---- */

/* Ends the group, and returns when it is gone, when the wrapper says that there is no group any
 * more, or after SIGKILL. */
static void end_group(struct monitor_page *page, pid_t group, int64_t deadline_ms)
{
    const struct ending *e = &page->ending;
    int64_t kill_at = ending_kill_at_ms(e, deadline_ms);
    if (!atomic_load(&page->wrapper_is_ending_it)) {
        atomic_store(&page->acted, true);
        ending_begin(e, group);
        int64_t graceful = cli_now_ms() + e->grace_ms;
        kill_at = graceful < kill_at ? graceful : kill_at;
    }
    while (cli_now_ms() < kill_at) {
        if (atomic_load(&page->group) != group || (kill(-group, 0) != 0 && errno == ESRCH))
            return;
        wait_sleep_us(POLL_US);
    }
    if (atomic_load(&page->group) == group) {
        atomic_store(&page->acted, true);
        kill(-group, SIGKILL);
    }
}

/* When the monitor acts: a moment after the wrapper would, so that a healthy wrapper acts first and
 * the command gets one SIGTERM. */
static int64_t act_at_ms(const struct ending *e, int64_t deadline_ms)
{
    int64_t begin = ending_begin_at_ms(e, deadline_ms), last = ending_kill_at_ms(e, deadline_ms);
    return begin + clamp((last - begin) / 4, 5, 250);
}

static _Noreturn void watch(struct monitor_page *page, int pipe_fd, int timer)
{
    struct pollfd fds[] = {{.fd = pipe_fd, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    pid_t ended = 0;
    for (;;) {
        pid_t group = atomic_load(&page->group);
        int64_t deadline = atomic_load(&page->deadline_ms);
        bool due = group && group != ended && page->ending.on_loss != LOSS_WARN;
        if (due && act_at_ms(&page->ending, deadline) <= cli_now_ms()) {
            end_group(page, group, deadline);
            ended = group;
            continue;
        }
        wait_timer_set(timer, due ? act_at_ms(&page->ending, deadline) * 1000 : 0);
        if (wait_files(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            wait_timer_clear(timer);
        char wake_ups[16];
        if (fds[0].revents && read(pipe_fd, wake_ups, sizeof wake_ups) == 0) {
            group = atomic_load(&page->group);
            if (group && group != ended && page->ending.on_loss != LOSS_WARN)
                end_group(page, group, atomic_load(&page->deadline_ms));
            _exit(0);
        }
    }
}
