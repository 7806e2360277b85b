/* A client of a cell in the same process (cell/cell.h): requests that a test's threads hand over
 * and wait for. */
#ifndef HF_TESTS_SUPPORT_CELL_CLIENT_H
#define HF_TESTS_SUPPORT_CELL_CLIENT_H

#include "base/metrics.h"
#include "cell/cell.h"

struct cell_call {
    struct cell_request r;
    int n_answers; /* under a lock of cell_client.c */
};

/* Hands a request over, and waits for its answer.  cell_call_close frees what the answer has. */
void cell_call_begin(struct cell *c, struct cell_call *call);
void cell_call_wait(struct cell_call *call);
bool cell_call_is_answered(const struct cell_call *call);
void cell_call_close(struct cell_call *call);

/* Fills in a request, which begins with a zeroed struct.  Texts are borrowed. */
void cell_call_open(struct cell_call *call, uint32_t ttl_ms, const char *label);
void cell_call_acquire(struct cell_call *call, const struct id *session, uint16_t owner,
                       const char *name, int64_t wait_ms);
void cell_call_release(struct cell_call *call, const struct id *session, uint16_t owner,
                       const char *name);
void cell_call_keepalive(struct cell_call *call, const struct id *session);

/* The same, carried out. */
enum cell_result cell_do_open(struct cell *c, uint32_t ttl_ms, const char *label,
                              struct id *ret_session);
enum cell_result cell_do_acquire(struct cell *c, const struct id *session, uint16_t owner,
                                 const char *name, int64_t wait_ms, int64_t *ret_fence);
enum cell_result cell_do_release(struct cell *c, const struct id *session, uint16_t owner,
                                 const char *name);
enum cell_result cell_do_keepalive(struct cell *c, const struct id *session);
enum cell_result cell_do_close(struct cell *c, const struct id *session);
enum cell_result cell_do_value(struct cell *c, const struct id *session, uint16_t owner,
                               const char *name, int64_t fence, const char *value);

#endif
