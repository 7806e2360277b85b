/* Several locks at once.  They are taken one by one in the order of their names (as strcmp compares
 * them), so that sets cannot deadlock, and given back in the reverse order in one exchange.  Runs
 * on the caller's thread.
 *
 * While a set is incomplete its locks are renewed as usual, but on_loss is not called for them,
 * since the caller does not have them yet.  A set that has lost a member meanwhile is not handed
 * out. */
#include "lock/set.h"

#include <stdlib.h>
#include <string.h>

#include "lock/acquire.h"
#include "lock/lock.h"
#include "lock/options.h"

#define SET_MAX 64

struct hf_lock_set {
    struct hf_locks *locks;
    struct hf_lock_set *prev, *next; /* in locks->sets; under locks->mutex */
    size_t n;
    struct hf_lock *locked[SET_MAX]; /* by name */
};

_Static_assert(SET_MAX <= LOCK_BATCH_MAX, "a set is released in one exchange");

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fills sorted[n]; the names are all different. */
static enum hf_result sort_names(const struct hf_locks *locks, const char *const *names, size_t n,
                                 const char **sorted, struct hf_fault *fault)
{
    if (!names || n < 1 || n > SET_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "a set of %zu locks: from 1 to %d", n, SET_MAX);
    for (size_t i = 0; i < n; i++) {
        enum hf_result r = options_check_name(locks, names[i], fault);
        if (r != HF_DONE)
            return r;
        sorted[i] = names[i];
    }
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return fault_set(fault, HF_BAD_REQUEST, "a name is given twice: %.200s", sorted[i]);
    return HF_DONE;
}

HF_MUST_USE static enum hf_result release_set(struct hf_lock_set *set, struct hf_fault *fault)
{
    struct hf_lock *reverse[SET_MAX];
    for (size_t i = 0; i < set->n; i++)
        reverse[i] = set->locked[set->n - 1 - i];
    enum hf_result r = set->n > 0 ? lock_release(set->locks, reverse, set->n, fault) : HF_DONE;
    free(set);
    return r;
}

/* From here on the loss of each member is reported.  Returns false if one is lost already. */
static bool hand_out(struct hf_lock_set *set, const struct hf_lock_options *options)
{
    struct hf_locks *locks = set->locks;
    bool ok = true;
    pthread_mutex_lock(&locks->mutex);
    for (size_t i = 0; i < set->n; i++)
        ok = ok && hf_lock_held(set->locked[i]);
    if (ok) {
        for (size_t i = 0; i < set->n; i++) {
            set->locked[i]->in_set = true;
            set->locked[i]->on_loss = options->on_loss;
            set->locked[i]->ctx = options->ctx;
        }
        set->next = locks->sets;
        if (set->next)
            set->next->prev = set;
        locks->sets = set;
    }
    pthread_mutex_unlock(&locks->mutex);
    return ok;
}

enum hf_result hf_lock_many(struct hf_locks *locks, const char *const *names, size_t n,
                            const struct hf_lock_options *options, struct hf_lock_set **ret,
                            struct hf_fault *fault)
{
    const char *sorted[SET_MAX] = {NULL};
    struct hf_lock_options checked;
    struct wait_limit limit;
    enum hf_result r;
    if ((r = sort_names(locks, names, n, sorted, fault)) != HF_DONE ||
        (r = options_check(locks, options, &checked, fault)) != HF_DONE)
        return r;
    struct hf_lock_options quiet = checked;
    quiet.on_loss = NULL;
    wait_limit_init(&limit, &checked);
    struct hf_lock_set *set = hf_alloc(sizeof *set);
    set->locks = locks;
    for (size_t i = 0; i < n; i++) {
        r = lock_acquire(locks, sorted[i], &quiet, &limit, &set->locked[i], fault);
        if (r != HF_DONE) {
            (void)!release_set(set, NULL);
            return r;
        }
        set->n++;
    }
    if (!hand_out(set, &checked)) {
        (void)!release_set(set, NULL);
        return fault_set(fault, HF_TAKEN,
                         "one of the locks ran out while the others were waited for");
    }
    *ret = set;
    return HF_DONE;
}

enum hf_result hf_unlock_many(struct hf_lock_set *set, struct hf_fault *fault)
{
    if (!set)
        return HF_DONE;
    struct hf_locks *locks = set->locks;
    enum hf_result r = options_check_process(locks, fault);
    if (r != HF_DONE)
        return r;
    pthread_mutex_lock(&locks->mutex);
    if (set->prev)
        set->prev->next = set->next;
    else
        locks->sets = set->next;
    if (set->next)
        set->next->prev = set->prev;
    pthread_mutex_unlock(&locks->mutex);
    return release_set(set, fault);
}

struct hf_lock *hf_lock_set_at(const struct hf_lock_set *set, size_t i)
{
    return i < set->n ? set->locked[i] : NULL;
}

void sets_free(struct hf_locks *locks)
{
    for (struct hf_lock_set *set = locks->sets, *next; set; set = next) {
        next = set->next;
        free(set);
    }
    locks->sets = NULL;
}
