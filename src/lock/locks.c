/* An opened back end: opening and closing, inspecting locks, and what the library says about
 * itself. This file is the library's `main`: the only one that names the system's clock.  Any
 * thread. */
#include "lock/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lock/lock.h"
#include "lock/options.h"
#include "lock/set.h"
#include "lock/sized.h"

/* ---- opening and closing ---- */

static enum hf_result read_options(const struct hf_options *options, struct hf_options *ret,
                                   struct hf_fault *fault)
{
    struct hf_options o = HF_OPTIONS_INIT;
    enum hf_result r;
    if (options && (r = sized_read(&sized_options, options, &o, fault)) != HF_DONE)
        return r;
    if (o.timeout_ms == 0)
        o.timeout_ms = LEASE_TIMEOUT_MS;
    if (o.timeout_ms < 1 || o.timeout_ms > LEASE_TIMEOUT_MAX_MS)
        return fault_set(fault, HF_BAD_REQUEST,
                         "timeout_ms is %lld; it must be between 1 and %d, or 0 for the default",
                         (long long)o.timeout_ms, LEASE_TIMEOUT_MAX_MS);
    *ret = o;
    return HF_DONE;
}

/* A page of its own, since the kernel wipes whole pages. */
static const int *origin_new(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return NULL;
    }
    *page = 1;
    return page;
}

static void origin_free(const int *page)
{
    if (page)
        munmap((void *)(uintptr_t)page, (size_t)sysconf(_SC_PAGESIZE));
}

enum hf_result locks_open(const struct lease_driver *driver, const char *url,
                          const struct hf_options *options, struct hf_locks **ret,
                          struct hf_fault *fault)
{
    struct hf_options o = HF_OPTIONS_INIT;
    struct lease *first = NULL;
    enum hf_result r = read_options(options, &o, fault);
    if (r != HF_DONE)
        return r;
    struct hf_locks *locks = hf_alloc(sizeof *locks);
    const struct lease_options how = {.timeout_ms = o.timeout_ms,
                                      .clock = &clock_system,
                                      .on_lost = watch_heard_of_loss,
                                      .ctx = locks};
    pthread_mutex_init(&locks->mutex, NULL);
    if ((r = lease_open(driver, url, &how, &first, fault)) != HF_DONE) {
        pthread_mutex_destroy(&locks->mutex);
        free(locks);
        return r;
    }
    locks->driver = driver;
    locks->pid = getpid();
    locks->is_origin = origin_new();
    locks->clock = &clock_system;
    locks->timeout_ms = o.timeout_ms;
    pool_init(&locks->pool, first, o.timeout_ms);
    random_init_system(&locks->random);
    *ret = locks;
    return HF_DONE;
}

/* The fault lists the URLs that this library understands.  It does not quote the given one, which
 * may contain a password. */
static enum hf_result refuse_url(struct hf_fault *fault)
{
    char known[220] = "";
    size_t len = 0;
    for (const struct lease_driver *const *d = lease_drivers; *d; d++)
        for (const char *const *scheme = (*d)->schemes; *scheme; scheme++)
            if (len < sizeof known)
                len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "",
                                        *scheme);
    return fault_set(fault, HF_BAD_REQUEST, "no back end has such URLs: %s are known", known);
}

enum hf_result hf_open(const char *url, const struct hf_options *options, struct hf_locks **ret,
                       struct hf_fault *fault)
{
    const struct lease_driver *driver = url ? lease_driver_for(url) : NULL;
    return driver ? locks_open(driver, url, options, ret, fault) : refuse_url(fault);
}

static void release_all(struct hf_locks *locks)
{
    while (locks->all) {
        struct hf_lock *batch[LOCK_BATCH_MAX];
        size_t n = 0;
        for (struct hf_lock *l = locks->all; l && n < LOCK_BATCH_MAX; l = l->next)
            batch[n++] = l;
        (void)!lock_release(locks, batch, n, NULL);
    }
}

void hf_close(struct hf_locks *locks)
{
    if (!locks || locks_is_forked(locks))
        return;
    watch_stop(locks);
    release_all(locks);
    sets_free(locks);
    pool_close(&locks->pool);
    heap_close(&locks->watch.heap);
    pthread_mutex_destroy(&locks->mutex);
    explicit_bzero(&locks->random, sizeof locks->random);
    origin_free(locks->is_origin);
    free(locks);
}

/* ---- inspecting ---- */

/* Turns the driver's array into the public list of pointers, as one block of memory. */
static const struct hf_holder *const *list_holders(const struct hf_holder *from, size_t n)
{
    if (n == 0)
        return NULL;
    struct hf_holder **list = hf_alloc(n * (sizeof *list + sizeof **list));
    struct hf_holder *all = (struct hf_holder *)(void *)(list + n);
    for (size_t i = 0; i < n; i++) {
        all[i] = from[i];
        all[i].size = sizeof all[i];
        list[i] = &all[i];
    }
    return (const struct hf_holder *const *)list;
}

_Static_assert(_Alignof(struct hf_holder) <= _Alignof(void *), "holders follow their pointers");

/* Programs that were compiled with version 0.1.0 have no member for it. */
static bool has_value(const struct hf_lock_state *state)
{
    return state->size >= offsetof(struct hf_lock_state, value) + sizeof state->value;
}

enum hf_result hf_inspect(struct hf_locks *locks, const char *name, struct hf_lock_state *ret,
                          struct hf_fault *fault)
{
    struct lease *handle = NULL;
    struct lease_state found = {0};
    enum hf_result r;
    if ((r = sized_check(&sized_lock_state, ret, fault)) != HF_DONE ||
        (r = options_check_name(locks, name, fault)) != HF_DONE ||
        (r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    r = lease_inspect(handle, name, strlen(name), &found, fault);
    pool_give(&locks->pool, handle, false);
    if (r != HF_DONE)
        return r;
    const struct hf_lock_state state = {
        .n_holders = found.n_holders,
        .n_waiters = found.n_waiters,
        .holders = list_holders(found.holders, found.n_holders),
        .waiters = list_holders(found.waiters, found.n_waiters),
        .last_fence = found.last_fence,
        .value = has_value(ret) ? found.value : NULL,
    };
    if (has_value(ret))
        found.value = NULL; /* it belongs to the caller now */
    sized_write(&sized_lock_state, ret, &state);
    lease_state_close(&found);
    return HF_DONE;
}

void hf_lock_state_close(struct hf_lock_state *state)
{
    if (sized_check(&sized_lock_state, state, NULL) != HF_DONE)
        return;
    free((void *)(uintptr_t)state->holders);
    free((void *)(uintptr_t)state->waiters);
    if (has_value(state))
        free((void *)(uintptr_t)state->value);
    sized_write(&sized_lock_state, state, &(struct hf_lock_state){.n_holders = 0});
}

enum hf_result hf_list(struct hf_locks *locks, const char *prefix,
                       bool (*each)(void *ctx, const char *name), void *ctx, struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if (!each)
        return fault_set(fault, HF_BAD_REQUEST, "hf_list needs a function to call");
    if (!prefix)
        prefix = "";
    if ((r = options_check_process(locks, fault)) != HF_DONE ||
        (prefix[0] && (r = options_check_name(locks, prefix, fault)) != HF_DONE) ||
        (r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    r = lease_list(handle, prefix, strlen(prefix), each, ctx, fault);
    pool_give(&locks->pool, handle, false);
    return r;
}

enum hf_result hf_break(struct hf_locks *locks, const char *name, struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if ((r = options_check_name(locks, name, fault)) != HF_DONE ||
        (r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    r = lease_break(handle, name, strlen(name), fault);
    pool_give(&locks->pool, handle, false);
    return r;
}

/* ---- about the library ---- */

_Static_assert(offsetof(struct lease_driver, info) == 0, "hf_drivers relies on it");

/* The table of drivers, each seen through its first member: there is no second list to maintain. */
const struct hf_driver_info *const *hf_drivers(size_t *ret_n)
{
    size_t n = 0;
    while (lease_drivers[n])
        n++;
    *ret_n = n;
    return (const struct hf_driver_info *const *)(const void *)lease_drivers;
}
