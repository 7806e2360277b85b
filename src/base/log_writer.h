/* How lines of the log and of stdout leave the process: directly, or through a buffer and a thread
 * that writes, so that nobody else waits for a reader of stderr that stands still.
 *
 * The thread may block in write(2) for as long as the reader likes.  Meanwhile lines gather in a
 * buffer of 1 MiB.  When it is full, lines are dropped and counted until the thread has written all
 * that came before; then it writes one line that says how many are missing there, and the log goes
 * on.  stderr stays as it was opened: it may be shared with other processes, so it is not made
 * non-blocking.
 *
 * Lines keep their order, also between stdout and stderr.  Thread-safe.  There is one writer per
 * process. */
#ifndef HF_BASE_LOG_WRITER_H
#define HF_BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* Writes whole lines to `fd`, which is stdout or stderr.  Costs a copy while the thread runs.
 * Without it the caller writes, and waits for the reader. */
void log_writer_put(int fd, const char *lines, size_t len);

/* Starts the thread.  `gap_line` appends the line that stands where `lost` lines are missing. */
HF_MUST_USE bool log_writer_start(void (*gap_line)(struct buf *line, uint64_t lost),
                                  struct hf_err *err);
/* Waits until all lines are written, for at most this long.  Returns false if some are not. */
bool log_writer_flush(int64_t timeout_ms);
/* Flushes and ends the thread, so that callers write again by themselves.  If the reader stands
 * still, the thread is left behind, and the process goes on without it. */
void log_writer_stop(int64_t timeout_ms);

/* Lines that were dropped since the process started: the buffer was full, or the write failed. */
uint64_t log_writer_dropped(void);

#endif
