/* See zookeeper.h. */
#include "support/fixtures.h"

#include "support/zookeeper.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROLE "--zookeeper-process"
#define PATIENCE_MS 20000 /* a process that stood still answers late */

struct lease_request zk_asks(const char *key, int64_t ttl_ms, bool queue)
{
    struct lease_request q = asks(key);
    q.ttl_ms = ttl_ms;
    q.queue = queue;
    return q;
}

int64_t zk_wait_for(struct lease *l, const struct lease_request *q, int64_t most_ms,
                    struct lease_verdict *ret)
{
    int64_t from_ms = boot_ms();
    while ((*ret = must_acquire_again(l, q)).result != HF_DONE) {
        struct hf_fault fault = {0};
        assert_true(boot_ms() - from_ms < most_ms);
        if (lease_wait(l, q, 1000, &fault) != HF_DONE)
            fail_msg("%s", fault.msg);
    }
    return boot_ms() - from_ms;
}

/* ---- processes ---- */

void zk_process_start(struct zk_process *p, const char *url, const char *key, int64_t ttl_ms)
{
    int out[2];
    char ttl[32];
    snprintf(ttl, sizeof ttl, "%" PRId64, ttl_ms);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    *p = (struct zk_process){.out = out[0]};
    pid_t parent = getpid();
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        setenv("ASAN_OPTIONS", "detect_leaks=0:exitcode=99", 1);
        dup2(out[1], STDOUT_FILENO);
        execl("/proc/self/exe", "zookeeper-process", ROLE, url, key, ttl, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
}

bool zk_process_read(struct zk_process *p, int64_t most_ms)
{
    int64_t end_ms = boot_ms() + most_ms;
    for (;;) {
        char *newline = memchr(p->rest, '\n', p->len);
        if (newline) {
            size_t len = (size_t)(newline - p->rest);
            snprintf(p->line, sizeof p->line, "%.*s", (int)len, p->rest);
            p->len -= len + 1;
            memmove(p->rest, newline + 1, p->len);
            return true;
        }
        int64_t left_ms = end_ms - boot_ms();
        struct pollfd file = {.fd = p->out, .events = POLLIN};
        if (left_ms <= 0 || poll(&file, 1, (int)left_ms) <= 0)
            return false;
        ssize_t n = read(p->out, p->rest + p->len, sizeof p->rest - p->len);
        if (n <= 0)
            return false;
        p->len += (size_t)n;
    }
}

int64_t zk_process_await(struct zk_process *p, const char *word, int64_t most_ms)
{
    int64_t end_ms = boot_ms() + most_ms;
    size_t len = strlen(word);
    do
        if (!zk_process_read(p, end_ms - boot_ms()))
            fail_msg("no line \"%s\" in time", word);
    while (strncmp(p->line, word, len) != 0);
    return strtoll(p->line + len, NULL, 10);
}

void zk_process_kill(struct zk_process *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->out);
}

static void say(const char *text, int64_t number)
{
    printf(number ? "%s %" PRId64 "\n" : "%s\n", text, number);
    fflush(stdout);
}

/* Takes the lock, waiting for it if it is taken. */
static enum hf_result take(struct lease *l, const struct lease_request *q, struct lease_verdict *v)
{
    enum hf_result result;
    while ((result = lease_acquire(l, q, v, NULL)) == HF_DONE && v->result == HF_TAKEN) {
        say("waits", 0);
        if ((result = lease_wait(l, q, 10000, NULL)) != HF_DONE)
            return result;
    }
    return result;
}

void zk_process_main(int argc, char **argv)
{
    if (argc != 5 || strcmp(argv[1], ROLE) != 0)
        return;
    struct lease *l;
    struct hf_fault fault;
    int64_t ttl_ms = strtoll(argv[4], NULL, 10);
    struct lease_request q = zk_asks(argv[3], ttl_ms, true);
    struct lease_verdict v = {0};
    if (try_open(argv[2], PATIENCE_MS, &l, &fault) != HF_DONE || take(l, &q, &v) != HF_DONE) {
        say("failed", 0);
        exit(1);
    }
    say("held", v.fence);
    for (;;) {
        usleep((useconds_t)(ttl_ms * 200));
        enum hf_result result = lease_renew(l, &q, 1, &v, NULL);
        if (result == HF_DONE && v.result == HF_LOST)
            break;
        say(result == HF_DONE ? "renewed" : "failed", 0);
    }
    say("lost", 0);
    exit(0);
}
