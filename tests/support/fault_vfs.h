/* An SQLite file system that fails on demand: it wraps the default one, counts calls by kind, and
 * makes the Nth call, or all from the Nth on, return a given error.  Any thread.
 *
 * A failing write leaves half of its bytes behind, as a full disk does; a failing sync leaves what
 * was written where a crash may keep it or lose it.  A sync that succeeds is not passed on, since
 * no test cuts the power. */
#ifndef HF_TESTS_SUPPORT_FAULT_VFS_H
#define HF_TESTS_SUPPORT_FAULT_VFS_H

#include <stdbool.h>

#define FAULT_VFS "faulty" /* sqlite:PATH?vfs=faulty */

enum fault_call {
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_TRUNCATE,
    FAULT_SHM_MAP,
    FAULT_SHM_LOCK, /* taking a lock, not releasing it */
    FAULT_CALLS
};

void fault_vfs_register(void); /* call it once */
/* Resets the counts; call number `at` (from 1) of this kind fails, or all from it on. */
void fault_arm(enum fault_call call, int at, int code, bool forever);
void fault_disarm(void);
int fault_hits(void);                  /* calls failed since fault_arm */
int fault_calls(enum fault_call call); /* calls made since fault_arm */

#endif
