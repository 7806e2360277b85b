/* See lock_crowd.h.  The board is a file without a name, which clients open through /proc. */
#include "lab/lock_crowd.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "lab/launch.h"
#include "lab/lock_client.h"

#define LOOK_EVERY_US 1000

int64_t crowd_now_us(void) { return clock_boot_us(&clock_system); }

/* ---- the board ---- */

bool crowd_open(struct lock_crowd *crowd, const struct servers *home, struct hf_err *err)
{
    *crowd = (struct lock_crowd){.dir = home->dir,
                                 .board_fd = memfd_create("holdfast-lab", MFD_CLOEXEC)};
    void *at = MAP_FAILED;
    if (crowd->board_fd >= 0 && ftruncate(crowd->board_fd, sizeof *crowd->board) == 0)
        at = mmap(NULL, sizeof *crowd->board, PROT_READ | PROT_WRITE, MAP_SHARED, crowd->board_fd,
                  0);
    if (at == MAP_FAILED) {
        (void)hf_err_set(err, HF_INTERNAL, "no memory to share with clients: %m");
        return false;
    }
    crowd->board = at;
    (void)snprintf(crowd->board_path, sizeof crowd->board_path, "/proc/%d/fd/%d", (int)getpid(),
                   crowd->board_fd);
    return true;
}

void crowd_close(struct lock_crowd *crowd)
{
    if (!crowd->board)
        return;
    crowd_clear(crowd);
    (void)munmap(crowd->board, sizeof *crowd->board);
    (void)close(crowd->board_fd);
    *crowd = (struct lock_crowd){0};
}

void crowd_clear(struct lock_crowd *crowd)
{
    for (size_t i = 0; i < crowd->n; i++)
        crowd_kill(crowd, i);
    /* A file that is cut to nothing and grows again is full of zeros. */
    hf_check(ftruncate(crowd->board_fd, 0) == 0 &&
             ftruncate(crowd->board_fd, sizeof *crowd->board) == 0);
    memset(crowd->clients, 0, sizeof crowd->clients);
    crowd->n = 0;
}

/* ---- clients ---- */

size_t crowd_start(struct lock_crowd *crowd, const struct lock_task *task, size_t n)
{
    char first[16], count[16];
    hf_check(crowd->n + n <= LOCK_CLIENTS_MAX);
    (void)snprintf(first, sizeof first, "%zu", crowd->n);
    (void)snprintf(count, sizeof count, "%zu", n);
    for (size_t i = 0; i < n; i++)
        crowd->board->pages[crowd->n + i].task = *task;
    struct launch l = {.path = "/proc/self/exe",
                       .args = {NULL, "lab", "lock-client", crowd->board_path, first, count, NULL},
                       .dir = crowd->dir,
                       .log = "clients.log",
                       .out = -1,
                       .death_signal = SIGKILL};
    crowd->clients[crowd->n].pid = launch_start(&l);
    crowd->n += n;
    return crowd->n - n;
}

/* Collects a process that has ended. */
static bool has_ended(struct lock_crowd *crowd, size_t client)
{
    pid_t *pid = &crowd->clients[client].pid;
    if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) == 0)
        return false;
    *pid = 0;
    return true;
}

static bool fail(const struct lock_crowd *crowd, size_t client, struct hf_err *err)
{
    const struct board_page *page = &crowd->board->pages[client];
    (void)hf_err_set(err, HF_UNAVAILABLE, "%s",
                     page->state == LOCK_FAILED ? page->failure
                                                : "a client gave no answer in time");
    return false;
}

/* Clients that are threads of another's process have no process of their own. */
static bool is_thread(const struct lock_crowd *crowd, size_t client)
{
    return crowd->clients[client].pid == 0;
}

bool crowd_await(struct lock_crowd *crowd, size_t client, enum lock_client_state state,
                 int64_t limit_ms, struct hf_err *err)
{
    const struct board_page *page = &crowd->board->pages[client];
    bool thread = is_thread(crowd, client);
    for (int64_t until_us = wait_now_us() + 1000 * limit_ms; wait_now_us() < until_us;) {
        if (page->state == (int)state)
            return true;
        if (page->state == LOCK_FAILED || (!thread && has_ended(crowd, client)))
            break;
        wait_sleep_us(LOOK_EVERY_US);
    }
    return fail(crowd, client, err);
}

bool crowd_await_end(struct lock_crowd *crowd, size_t client, int64_t limit_ms, struct hf_err *err)
{
    for (int64_t until_us = wait_now_us() + 1000 * limit_ms; wait_now_us() < until_us;) {
        if (has_ended(crowd, client))
            return crowd->board->pages[client].state != LOCK_FAILED || fail(crowd, client, err);
        wait_sleep_us(LOOK_EVERY_US);
    }
    return fail(crowd, client, err);
}

void crowd_pause(struct lock_crowd *crowd, size_t client)
{
    if (crowd->clients[client].pid > 0)
        (void)kill(crowd->clients[client].pid, SIGSTOP);
    crowd->clients[client].is_stopped = true;
}

void crowd_resume(struct lock_crowd *crowd, size_t client)
{
    if (crowd->clients[client].pid > 0)
        (void)kill(crowd->clients[client].pid, SIGCONT);
    crowd->clients[client].is_stopped = false;
}

void crowd_kill(struct lock_crowd *crowd, size_t client)
{
    pid_t *pid = &crowd->clients[client].pid;
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    crowd->clients[client].died_us = crowd_now_us();
    (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

void crowd_release(struct lock_crowd *crowd, size_t client)
{
    if (crowd->clients[client].pid > 0)
        (void)kill(crowd->clients[client].pid, LOCK_CLIENT_RELEASE);
}

void crowd_stop(struct lock_crowd *crowd, int64_t limit_ms)
{
    int64_t until_us = wait_now_us() + 1000 * limit_ms;
    for (size_t i = 0; i < crowd->n; i++) {
        if (crowd->clients[i].is_stopped)
            crowd_resume(crowd, i);
        if (crowd->clients[i].pid > 0)
            (void)kill(crowd->clients[i].pid, LOCK_CLIENT_STOP);
    }
    for (size_t i = 0; i < crowd->n; i++) {
        while (!has_ended(crowd, i) && wait_now_us() < until_us)
            wait_sleep_us(LOOK_EVERY_US);
        crowd_kill(crowd, i);
    }
}

/* ---- what they wrote ---- */

void crowd_history(const struct lock_crowd *crowd, size_t first, size_t n, struct history *ret)
{
    int64_t now = crowd_now_us();
    for (size_t i = first; i < first + n; i++)
        history_add(ret, &crowd->board->pages[i], i, crowd->clients[i].died_us, now);
    history_sort(ret);
}

uint64_t crowd_grants_since(const struct lock_crowd *crowd, size_t client, int64_t us)
{
    const struct board_page *page = &crowd->board->pages[client];
    uint64_t n = 0;
    for (uint64_t i = page->n_grants; i > 0 && page->grants[i - 1].granted_us >= us; i--)
        n++;
    return n;
}

bool crowd_has_room(const struct lock_crowd *crowd)
{
    for (size_t i = 0; i < crowd->n; i++)
        if (crowd->board->pages[i].is_full)
            return false;
    return true;
}
