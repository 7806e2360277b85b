/* The guards that check a fence at the target of a write.  Each keeps the largest fence it has seen
 * for a resource.  An equal fence passes, since one holder may write many times; a lower one is
 * refused, since its holder has been replaced.  The guards for PostgreSQL and Redis are in
 * share/holdfast.
 *
 * hf_fence_sqlite runs on the caller's connection and thread, inside the caller's transaction: the
 * fence and the write that it protects commit together or not at all. */
#include <inttypes.h>
#ifndef HF_WITHOUT_SQLITE
#include <sqlite3.h>
#endif
#include <string.h>

#include "base/fault.h"

#ifdef HF_WITHOUT_SQLITE

enum hf_result hf_fence_sqlite(void *handle, const char *resource, int64_t fence,
                               struct hf_fault *fault)
{
    (void)handle, (void)resource, (void)fence;
    return fault_set(fault, HF_UNSUPPORTED, "this libholdfast was built without SQLite");
}

#else

#define RESOURCE_LEN_MAX 255

static enum hf_result sqlite_fault(sqlite3 *db, struct hf_fault *fault)
{
    return fault_set(fault, HF_FAILED, "the fence could not be checked: %.180s",
                     sqlite3_errmsg(db));
}

enum hf_result hf_fence_sqlite(void *handle, const char *resource, int64_t fence,
                               struct hf_fault *fault)
{
    sqlite3 *db = handle;
    size_t len = strlen(resource);
    if (len == 0 || len > RESOURCE_LEN_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "a resource has 1 to %d bytes", RESOURCE_LEN_MAX);
    if (fence <= 0)
        return fault_set(fault, HF_BAD_REQUEST, "%" PRId64 " is no fence", fence);
    if (sqlite3_get_autocommit(db))
        return fault_set(fault, HF_BAD_REQUEST,
                         "a fence is checked inside the transaction it guards");
    if (sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS holdfast_fences ("
                     "resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID",
                     NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fault(db, fault);
    /* One statement compares and stores.  It changes no row if a larger fence is stored. */
    sqlite3_stmt *note;
    if (sqlite3_prepare_v2(db,
                           "INSERT INTO holdfast_fences VALUES (?1, ?2) ON CONFLICT (resource) "
                           "DO UPDATE SET fence = excluded.fence WHERE excluded.fence >= fence",
                           -1, &note, NULL) != SQLITE_OK)
        return sqlite_fault(db, fault);
    sqlite3_bind_text(note, 1, resource, (int)len, SQLITE_STATIC);
    sqlite3_bind_int64(note, 2, fence);
    int rc = sqlite3_step(note);
    enum hf_result result = HF_DONE;
    if (rc != SQLITE_DONE)
        result = sqlite_fault(db, fault);
    else if (sqlite3_changes(db) == 0)
        result =
            fault_set(fault, HF_LOST, "fence %" PRId64 " is stale: a larger one has written to %s",
                      fence, resource);
    sqlite3_finalize(note);
    return result;
}

#endif

bool hf_fence_check(struct hf_fence_guard *guard, int64_t fence)
{
    int64_t largest = __atomic_load_n(&guard->largest, __ATOMIC_ACQUIRE);
    while (fence > largest)
        if (__atomic_compare_exchange_n(&guard->largest, &largest, fence, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    return fence == largest && fence > 0;
}
