/* The program of which processes.c starts many.  Its threads take the lock, add one to a number in
 * a file as carelessly as possible, and give the lock back; or it takes the lock once and stops.
 *
 *   contender URL KEY count|careless THREADS TIMES FILE    careless: without the lock
 *   contender URL KEY hold TTL_MS                          prints its fence, then waits for its end
 *   contender URL KEY wait TTL_MS                          the same, with a place in the queue
 *   contender URL KEY renew TTL_MS                         renews it until it is lost, and prints that
 *
 * Every grant adds a line with its fence to FILE.fences.  Exits with 0 when all is done. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "lease/lease.h"

#define THREADS_MAX 64

struct job {
    struct lease *l;
    const char *key, *file;
    bool careless;
    int times;
    pthread_t thread;
};

static _Noreturn void die(const char *what, const struct hf_fault *fault)
{
    fprintf(stderr, "contender: %s: %s\n", what, fault->msg);
    exit(1);
}

static void owner_make(uint8_t owner[LEASE_OWNER_SIZE])
{
    struct random random;
    random_init_system(&random);
    random_bytes(&random, owner, LEASE_OWNER_SIZE);
}

/* After HF_UNREACHABLE and HF_UNKNOWN it asks again with the same owner. */
static int64_t take(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    for (int i = 0; i < 100000; i++) {
        enum hf_result result = lease_acquire(l, r, &v, &fault);
        if (result == HF_DONE && v.result == HF_DONE)
            return v.fence;
        if (result != HF_DONE && result != HF_UNKNOWN && result != HF_UNREACHABLE)
            die("acquire", &fault);
        result = lease_wait(l, r, 2000, &fault);
        if (result != HF_DONE && result != HF_UNKNOWN && result != HF_UNREACHABLE)
            die("wait", &fault);
    }
    die("never granted", &fault);
}

static void give_back(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    bool asked = false;
    for (int i = 0; i < 1000; i++, asked = true) {
        if (lease_release(l, r, 1, &v, &fault) != HF_DONE)
            continue;
        if (v.result == HF_DONE || asked)
            return;
        snprintf(fault.msg, sizeof fault.msg, "the lease had run out");
        break;
    }
    die("release", &fault);
}

/* Reads, dawdles and writes, so that two threads at once lose a count. */
static void add_one(const char *path, int64_t fence)
{
    char text[32] = {0}, fences[512];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, sizeof text - 1, 0) < 0)
        exit(2);
    long n = strtol(text, NULL, 10);
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    int len = snprintf(text, sizeof text, "%010ld\n", n + 1);
    if (pwrite(fd, text, (size_t)len, 0) != len)
        exit(2);
    close(fd);
    snprintf(fences, sizeof fences, "%s.fences", path);
    fd = open(fences, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    len = snprintf(text, sizeof text, "%" PRId64 "\n", fence);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        exit(2);
    close(fd);
}

static void *job_run(void *arg)
{
    struct job *job = arg;
    for (int i = 0; i < job->times; i++) {
        struct lease_request r = {.key = job->key,
                                  .key_len = strlen(job->key),
                                  .ttl_ms = 20000,
                                  .slots = 1,
                                  .queue = true};
        owner_make(r.owner);
        int64_t fence = job->careless ? 0 : take(job->l, &r);
        add_one(job->file, fence);
        if (!job->careless)
            give_back(job->l, &r);
    }
    return NULL;
}

static int count(struct lease *l, char **argv)
{
    struct job jobs[THREADS_MAX];
    struct hf_fault fault = {0};
    int n = (int)strtol(argv[4], NULL, 10);
    n = n < THREADS_MAX ? n : THREADS_MAX;
    for (int i = 0; i < n; i++) {
        jobs[i] = (struct job){.key = argv[2],
                               .file = argv[6],
                               .careless = strcmp(argv[3], "careless") == 0,
                               .times = (int)strtol(argv[5], NULL, 10)};
        if (lease_clone(l, &jobs[i].l, &fault) != HF_DONE)
            die("another", &fault);
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&jobs[i].thread, NULL, job_run, &jobs[i]) != 0)
            return 2;
    for (int i = 0; i < n; i++) {
        pthread_join(jobs[i].thread, NULL);
        lease_close(jobs[i].l);
    }
    return 0;
}

static void keep(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    do
        nanosleep(&(struct timespec){.tv_sec = r->ttl_ms / 5000,
                                     .tv_nsec = r->ttl_ms / 5 % 1000 * 1000000},
                  NULL);
    while (lease_renew(l, r, 1, &v, &fault) != HF_DONE || v.result != HF_LOST);
    printf("lost\n");
}

static void hold(struct lease *l, char **argv)
{
    struct lease_request r = {.key = argv[2],
                              .key_len = strlen(argv[2]),
                              .ttl_ms = strtoll(argv[4], NULL, 10),
                              .slots = 1,
                              .queue = strcmp(argv[3], "wait") == 0};
    owner_make(r.owner);
    int64_t asked_ms = clock_boot_us(&clock_system) / 1000, fence = take(l, &r);
    printf("%" PRId64 " %" PRId64 "\n", fence, asked_ms);
    fflush(stdout);
    if (strcmp(argv[3], "renew") == 0)
        return keep(l, &r);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    struct hf_fault fault = {0};
    struct lease *l = NULL;
    const struct lease_driver *driver = argc > 4 ? lease_driver_for(argv[1]) : NULL;
    struct lease_options options = {.timeout_ms = 20000, .clock = &clock_system};
    if (!driver)
        return 64;
    if (lease_open(driver, argv[1], &options, &l, &fault) != HF_DONE)
        die("open", &fault);
    int status = argc == 7 ? count(l, argv) : 0;
    if (argc == 5)
        hold(l, argv);
    lease_close(l);
    return status;
}
