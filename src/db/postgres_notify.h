/* LISTEN and NOTIFY, for the driver's table in postgres.c: see notify, listen, await and wake in
 * db.h. */
#ifndef HF_DB_POSTGRES_NOTIFY_H
#define HF_DB_POSTGRES_NOTIFY_H

#include "db/db.h"

#define PG_WAKE_TOPIC "holdfast_turn_" /* followed by the number to wake */

HF_MUST_USE enum hf_status pg_notify(struct db *base, const char *topic, const char *text,
                                     struct hf_err *err);
HF_MUST_USE enum hf_status pg_listen(struct db *base, const char *topic, int wake_fd,
                                     int64_t timeout_ms, struct buf *ret_lines, struct hf_err *err);
HF_MUST_USE enum hf_status pg_await(struct db *base, int64_t number, int wake_fd,
                                    int64_t timeout_ms, struct hf_err *err);
void pg_wake(struct db *base, const int64_t *numbers, size_t n);

#endif
