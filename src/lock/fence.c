/* Fences checked where it counts: the guards that a write target calls.  Each keeps the largest
 * fence it has seen for a resource; equal passes, since one holder writes many times; lower is
 * refused, since its holder has been replaced.  PostgreSQL's and Redis's are in share/holdfast.
 *
 * hf_fence_sqlite runs on the caller's connection and thread, in the caller's transaction: the note
 * and the write it protects commit together or not at all. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "holdfast.h"

#define RESOURCE_LEN_MAX 255

__attribute__((format(printf, 3, 4))) static enum hf_result
refuse(struct hf_fault *fault, enum hf_result result, const char *fmt, ...)
{
    if (fault) {
        fault->result = result;
        va_list args;
        va_start(args, fmt);
        vsnprintf(fault->msg, sizeof fault->msg, fmt, args);
        va_end(args);
    }
    return result;
}

static enum hf_result sqlite_fault(sqlite3 *db, struct hf_fault *fault)
{
    return refuse(fault, HF_FAILED, "the fence could not be checked: %.180s", sqlite3_errmsg(db));
}

enum hf_result hf_fence_sqlite(void *handle, const char *resource, int64_t fence,
                               struct hf_fault *fault)
{
    sqlite3 *db = handle;
    size_t len = strlen(resource);
    if (len == 0 || len > RESOURCE_LEN_MAX)
        return refuse(fault, HF_BAD_REQUEST, "a resource has 1 to %d bytes", RESOURCE_LEN_MAX);
    if (fence <= 0)
        return refuse(fault, HF_BAD_REQUEST, "%" PRId64 " is no fence", fence);
    if (sqlite3_get_autocommit(db))
        return refuse(fault, HF_BAD_REQUEST, "a fence is checked inside the transaction it guards");
    if (sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS holdfast_fences ("
                     "resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID",
                     NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fault(db, fault);
    /* One statement judges and notes.  A row that is not changed says: lower. */
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
            refuse(fault, HF_LOST, "fence %" PRId64 " is stale: a larger one has written to %s",
                   fence, resource);
    sqlite3_finalize(note);
    return result;
}

bool hf_fence_check(struct hf_fence_guard *guard, int64_t fence)
{
    int64_t largest = __atomic_load_n(&guard->largest, __ATOMIC_ACQUIRE);
    while (fence > largest)
        if (__atomic_compare_exchange_n(&guard->largest, &largest, fence, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    return fence == largest && fence > 0;
}
