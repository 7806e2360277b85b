/* See scene_client.h.  The command under the lock prints its fence and sleeps; the scene reads the
 * fence from a pipe.  Main thread, as all of the lab's children. */
#include "lab/scene_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"
#include "lab/assets.h"
#include "lab/launch.h"

#define GRANT_US_MAX 30000000 /* for a grant or a refusal, beyond wait_s */
#define ENVIRONMENT_MAX 1024
#define FENCE_SIZE 24
#define LOG "clients.log"
/* Exit statuses of `holdfast run`. */
#define NOT_GRANTED 75
#define UNREACHABLE 69
#define LOST 76
/* How often a lock is taken anew that was lost before its fence was read: a process that stands
 * still on a busy machine may outlast a short TTL. */
#define TRIES 5

/* ---- the process ---- */

/* The environment of this process without what is meant for another `holdfast`. */
static void write_environment(char *ret[ENVIRONMENT_MAX])
{
    size_t n = 0;
    for (char **at = environ; *at && n < ENVIRONMENT_MAX - 1; at++)
        if (strncmp(*at, "HOLDFAST_", 9) != 0)
            ret[n++] = *at;
    ret[n] = NULL;
}

static pid_t start(const struct scene *s, const struct scene_client *how, int out)
{
    char ttl[24], wait[24], *environment[ENVIRONMENT_MAX];
    (void)snprintf(ttl, sizeof ttl, "%ds", how->ttl_s);
    (void)snprintf(wait, sizeof wait, "%ds", how->wait_s);
    write_environment(environment);
    struct launch l = {
        .args = {NULL, "run", "--lock", how->url, "--ttl", ttl, "--wait", wait, "A-1", "--",
                 "/bin/sh", "-c", "echo \"$HOLDFAST_FENCE\"; exec /bin/sleep 120", NULL},
        .dir = s->servers->dir,
        .log = LOG,
        .out = out,
        /* A process that is stopped hears no other signal; its monitor then ends the command. */
        .death_signal = SIGKILL,
        .environment = environment,
    };
    ssize_t len = readlink("/proc/self/exe", l.path, sizeof l.path - 1);
    return len > 0 ? launch_start(&l) : -1;
}

/* Reads the fence that the command prints.  Returns false if the process ended without one or it
 * takes too long. */
static bool read_fence(int fd, int64_t timeout_us, char ret[FENCE_SIZE])
{
    size_t len = 0;
    int64_t until_us = wait_now_us() + timeout_us;
    struct pollfd file = {.fd = fd, .events = POLLIN};
    while (len < FENCE_SIZE - 1 && wait_now_us() < until_us) {
        if (wait_files(&file, 1, until_us - wait_now_us()) <= 0)
            continue;
        ssize_t n = read(fd, ret + len, 1);
        if (n <= 0)
            return false;
        if (ret[len] == '\n') {
            ret[len] = '\0';
            return len > 0;
        }
        len++;
    }
    return false;
}

/* Starts the process of `who` and reads its fence.  Returns false if there is none. */
static bool start_and_read(struct scene *s, const char *who, const struct scene_client *how,
                           char ret[FENCE_SIZE])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        scene_fail(s, "pipe: %s", strerror(errno));
        return false;
    }
    *scene_pid(s, who) = start(s, how, ends[1]);
    (void)close(ends[1]);
    bool granted = *scene_pid(s, who) > 0 &&
                   read_fence(ends[0], GRANT_US_MAX + how->wait_s * INT64_C(1000000), ret);
    (void)close(ends[0]);
    return granted;
}

/* ---- the scene ---- */

/* The exit status of the process of `who`, which has ended or is ended now. */
static int exit_status(struct scene *s, const char *who)
{
    pid_t *pid = scene_pid(s, who);
    int status = -1;
    for (int ms = 0; ms < LAUNCH_STOP_MS_MAX; ms += 10) {
        if (waitpid(*pid, &status, WNOHANG) == *pid) {
            *pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        launch_pause();
    }
    launch_stop(pid);
    return -1;
}

const char *scene_client_lock(struct scene *s, const char *who, const struct scene_client *how)
{
    char fence[FENCE_SIZE], why[160];
    int status = LOST;
    if (s->failed)
        return NULL;
    size_t step = scene_request(s, who, how->to, "holdfast run --lock %s --ttl %ds --wait %ds A-1",
                                how->shown, how->ttl_s, how->wait_s);
    for (int i = 0; i < TRIES && status == LOST; i++) {
        if (start_and_read(s, who, how, fence))
            return scene_answer(s, step, "fence %s", fence) + strlen("fence ");
        status = s->failed ? -1 : exit_status(s, who);
    }
    if (s->failed)
        return NULL;
    launch_last_line(s->servers->dir, LOG, why);
    if (status == NOT_GRANTED || status == UNREACHABLE)
        (void)scene_answer(s, step, "exit %d: %s", status, why);
    else
        scene_fail(s, "holdfast run ended with %d: %s", status, why);
    return NULL;
}

void scene_client_stop(struct scene *s, const char *who)
{
    pid_t pid = *scene_pid(s, who);
    if (pid > 0)
        (void)kill(pid, SIGSTOP);
    scene_note(s, who, "stands still: the process gets SIGSTOP");
}

void scene_client_continue(struct scene *s, const char *who)
{
    pid_t pid = *scene_pid(s, who);
    if (pid > 0)
        (void)kill(pid, SIGCONT);
    scene_note(s, who, "goes on, as if no time had passed");
}

void scene_clients_close(struct scene *s)
{
    for (size_t i = 0; i < ANOMALY_ACTORS_MAX; i++) {
        if (s->pids[i] > 0)
            (void)kill(s->pids[i], SIGCONT);
        launch_stop(&s->pids[i]);
    }
}

/* ---- at the ledger ---- */

void scene_client_prepare(struct scene *s) { scene_prepare(s, asset_fence_sql); }

bool scene_client_finds_it_free(struct scene *s, const char *who)
{
    bool is_free = scene_is(scene_sql(s, who, "SELECT status FROM seats WHERE id = 'A-1'"), "FREE");
    scene_think(s, is_free ? "Free, and I have the lock." : "Sold.");
    return is_free;
}

void scene_client_sell(struct scene *s, const char *who, const char *fence)
{
    scene_begin(s, who);
    if (fence && !scene_is(scene_sql(s, who, "SELECT holdfast_fence('A-1', %s)", fence), "done")) {
        scene_think(s, "My fence is stale: I was replaced. I write nothing.");
        (void)scene_sql(s, who, "ROLLBACK");
        return;
    }
    if (fence)
        scene_think(s, "No larger fence has been here.");
    (void)scene_sql(s, who, "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'", who);
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    (void)scene_sql(s, who, "COMMIT");
    scene_think(s, "I had the lock, so A-1 is mine.");
}

/* ---- the scene of the client that sleeps ---- */

#define TTL_THAT_ENDS_S 2 /* during the scene */
#define TTL_THAT_LASTS_S 30

void scene_client_sleeps(struct scene *s, const char *url, const char *shown, const char *to,
                         bool with_fence)
{
    struct scene_client how = {
        .url = url, .shown = shown, .to = to, .ttl_s = TTL_THAT_ENDS_S, .wait_s = SCENE_WAIT_S};
    const char *ann = scene_client_lock(s, "Ann", &how);
    bool ann_buys = ann && scene_client_finds_it_free(s, "Ann");
    scene_client_stop(s, "Ann");
    how.ttl_s = TTL_THAT_LASTS_S;
    const char *bob = scene_client_lock(s, "Bob", &how);
    if (bob && scene_client_finds_it_free(s, "Bob"))
        scene_client_sell(s, "Bob", with_fence ? bob : NULL);
    scene_client_continue(s, "Ann");
    if (ann_buys)
        scene_client_sell(s, "Ann", with_fence ? ann : NULL);
}
