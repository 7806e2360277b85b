/* A buyer's side of the engine for C tests: start one on a ledger, ask it things and wait for the
 * answers.  What HTTP threads do, without HTTP.  Failing to submit or to be answered exactly once
 * fails the test. */
#ifndef HF_TESTS_SUPPORT_ENGINE_CLIENT_H
#define HF_TESTS_SUPPORT_ENGINE_CLIENT_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/engine.h"

#define CALL_SEATS_MAX 4

struct client {
    struct engine *engine;
    struct metrics *metrics;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool paused, go_on; /* the worker, by client_batch */
    /* Called with each answer that is a failure, on the thread that gives it: until it returns,
     * that thread does nothing else.  NULL: nothing. */
    void (*on_failure)(const struct command *command);
};

struct call {
    struct command c;
    struct client *client;
    uint32_t seats[CALL_SEATS_MAX], taken[CALL_SEATS_MAX];
    int answers;
    bool pauses; /* its answer keeps the engine's thread until client.go_on */
};

HF_MUST_USE enum hf_status client_start(struct client *client, const char *url,
                                        const struct clock *clock, struct hf_err *err);
void client_stop(struct client *client);

/* Submit; wait for the answer; both. */
void client_put(struct client *client, struct call *call);
enum hf_status client_wait(struct call *call);
enum hf_status client_ask(struct client *client, struct call *call);
/* Queue them all while the worker is busy, so that they are one batch; then wait for all. */
void client_batch(struct client *client, int64_t event, struct call *const *calls, size_t n);

/* `call` is filled anew each time; close it when its answer has been looked at. */
void call_event_create(struct call *call, uint32_t rows, uint32_t seats_per_row);
void call_event_load(struct call *call, int64_t event);
void call_hold(struct call *call, struct event *event, uint32_t first, uint32_t n, int64_t ttl_ms);
/* CMD_HOLD_GET, RENEW, RELEASE, CONFIRM or CMD_BOOKING_GET of what `id` names. */
void call_on_hold(struct call *call, enum command_kind kind, struct event *event,
                  const struct id *id);
void call_key(struct call *call,
              uint8_t key);              /* an idempotency key, the same for the same number */
bool call_done(const struct call *call); /* answered with a success */
void call_close(struct call *call);

#endif
