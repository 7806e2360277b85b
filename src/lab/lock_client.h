/* A client of `holdfast lab locks`: a process, or one of several threads of a process, that takes
 * locks through holdfast.h as its page of the board says, and writes there what became of them. */
#ifndef HF_LAB_LOCK_CLIENT_H
#define HF_LAB_LOCK_CLIENT_H

#include <stddef.h>

/* Serves the pages from `first` on, `n` of them, each on a thread of its own over one struct
 * hf_locks, which the first page's URL opens.  Returns after SIGTERM, or when the work is done or
 * fails; the result is the exit status of the process. */
int lock_client_main(const char *board_path, size_t first, size_t n);

/* Signals to a client. */
#define LOCK_CLIENT_RELEASE SIGUSR1 /* release the lock that LOCK_KEEP keeps */
#define LOCK_CLIENT_STOP SIGTERM    /* release everything and end */

#endif
