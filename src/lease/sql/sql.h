/* The SQL driver's functions, for the tables in sqlite.c and postgres.c.  See struct lease_driver.
 */
#ifndef HF_LEASE_SQL_SQL_H
#define HF_LEASE_SQL_SQL_H

#include "lease/lease.h"

enum hf_result sql_open(const char *url, const struct lease_options *options, struct lease **ret,
                        struct hf_fault *fault);
/* For a database that is a file: each handle has a connection of its own. */
enum hf_result sql_open_file(const char *url, const struct lease_options *options,
                             struct lease **ret, struct hf_fault *fault);
void sql_close(struct lease *l);
enum hf_result sql_clone(struct lease *l, struct lease **ret, struct hf_fault *fault);
enum hf_result sql_acquire(struct lease *l, const struct lease_request *r,
                           struct lease_verdict *verdict, struct hf_fault *fault);
enum hf_result sql_renew(struct lease *l, const struct lease_request *requests, size_t n,
                         struct lease_verdict *verdicts, struct hf_fault *fault);
enum hf_result sql_release(struct lease *l, const struct lease_request *requests, size_t n,
                           struct lease_verdict *verdicts, struct hf_fault *fault);
enum hf_result sql_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                        struct hf_fault *fault);
enum hf_result sql_inspect(struct lease *l, const char *key, size_t key_len,
                           struct lease_state *ret, struct hf_fault *fault);
enum hf_result sql_list(struct lease *l, const char *prefix, size_t prefix_len,
                        lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result sql_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault);
enum hf_result sql_examine_server(struct lease *l, lease_each_finding *each, void *ctx,
                                  struct hf_fault *fault);
enum hf_result sql_examine_file(struct lease *l, lease_each_finding *each, void *ctx,
                                struct hf_fault *fault);

#define SQL_FUNCTIONS                                                                              \
    .close = sql_close, .clone = sql_clone, .acquire = sql_acquire, .renew = sql_renew,            \
    .release = sql_release, .wait = sql_wait, .inspect = sql_inspect, .list = sql_list,            \
    .break_ = sql_break

#endif
