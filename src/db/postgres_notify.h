/* LISTEN and NOTIFY, for the driver's table in postgres.c: see notify, listen and wake in
 * db.h. */
#ifndef HF_DB_POSTGRES_NOTIFY_H
#define HF_DB_POSTGRES_NOTIFY_H

#include "db/db.h"

HF_MUST_USE enum hf_status pg_notify(struct db *base, const char *topic, const char *text,
                                     struct hf_err *err);
HF_MUST_USE enum hf_status pg_listen(struct db *base, const char *topic, int wake_fd,
                                     int64_t timeout_ms, struct buf *ret_lines, struct hf_err *err);
void pg_wake(struct db *base, const struct db_wake *wakes, size_t n);

#endif
