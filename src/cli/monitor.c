/* See monitor.h.  The first half runs in the wrapper's main thread, the second is the monitor's
 * whole life: system calls and the shared page, no library, no allocation. */
#include "cli/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common.h"

#define STEP_MS 10

struct monitor_page {
    struct ending ending;
    _Atomic pid_t group;
    _Atomic int64_t deadline_ms;
    _Atomic bool wrapper_is_ending_it;
    _Atomic bool acted; /* the monitor's only word */
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
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (null < 0 || timer < 0)
        return false;
    /* The readers of our output must see its end when the command and the wrapper are gone.  0 to 2
     * are open in the wrapper, so the files above are others. */
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
    if (write(m->pipe, "", 1) != 1) /* it looks at the page again; if it is gone, monitor_gone */
        return;
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

static void set_timer(int timer, int64_t at_ms)
{
    if (at_ms < 1)
        at_ms = 1; /* zero would disarm it */
    struct itimerspec when = {
        .it_value = {.tv_sec = at_ms / 1000, .tv_nsec = (at_ms % 1000) * 1000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Until it is gone, or the wrapper says that there is no group any more, or time is up. */
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
        poll(NULL, 0, STEP_MS);
    }
    if (atomic_load(&page->group) == group) {
        atomic_store(&page->acted, true);
        kill(-group, SIGKILL);
    }
}

/* A moment after the wrapper's own, so that a healthy wrapper does it and the command gets one
 * SIGTERM. */
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
        set_timer(timer, due ? act_at_ms(&page->ending, deadline) : INT64_MAX / 2000000);
        poll(fds, 2, -1);
        uint64_t ticks;
        if (fds[1].revents && read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
            _exit(1);
        char nudges[16];
        if (fds[0].revents && read(pipe_fd, nudges, sizeof nudges) == 0) {
            group = atomic_load(&page->group);
            if (group && group != ended && page->ending.on_loss != LOSS_WARN)
                end_group(page, group, atomic_load(&page->deadline_ms));
            _exit(0);
        }
    }
}
