/* A client of the engine for C tests: starts an engine on a ledger, submits commands and waits for
 * their answers, as the HTTP threads do, but without HTTP.  A command that cannot be submitted, or
 * is not answered exactly once, fails the test. */
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
    bool paused, go_on; /* state of the worker, which client_batch pauses */
    /* If not NULL, called with each answer that is a failure, on the thread that gives the answer,
     * which does nothing else until it returns. */
    void (*on_failure)(const struct command *command);
};

struct call {
    struct command c;
    struct client *client;
    uint32_t seats[CALL_SEATS_MAX], taken[CALL_SEATS_MAX];
    int answers;
    bool pauses; /* the answer blocks the engine's thread until client.go_on */
};

HF_MUST_USE enum hf_status client_start(struct client *client, const char *url,
                                        const struct clock *clock, struct hf_err *err);
/* The same with a configuration, whose metrics and functions that render are filled in. */
HF_MUST_USE enum hf_status
client_start_with(struct client *client, const struct engine_config *config, struct hf_err *err);
/* The same, with notifications of each `1 << enum notice` that is in `notices`. */
HF_MUST_USE enum hf_status client_start_notifying(struct client *client, const char *url,
                                                  const struct clock *clock, unsigned notices,
                                                  struct hf_err *err);
void client_stop(struct client *client);

/* client_put submits a call, client_wait waits for its answer, client_ask does both. */
void client_put(struct client *client, struct call *call);
enum verdict client_wait(struct call *call);
enum verdict client_ask(struct client *client, struct call *call);
/* Queues all calls while the worker is busy, so that they form one batch, and waits for all. */
void client_batch(struct client *client, int64_t event, struct call *const *calls, size_t n);

/* These fill `call`; close it with call_close when its answer is no longer needed. */
void call_event_create(struct call *call, uint32_t rows, uint32_t seats_per_row);
void call_event_load(struct call *call, int64_t event);
void call_hold(struct call *call, struct event *event, uint32_t first, uint32_t n, int64_t ttl_ms);
/* CMD_HOLD_GET, RENEW, RELEASE, CONFIRM or CMD_BOOKING_GET for the hold or booking `id`. */
void call_on_hold(struct call *call, enum command_kind kind, struct event *event,
                  const struct id *id);
/* CMD_WAIT_JOIN for places of area 0, of an event that call_wait_terms gave a waiting list before it
 * was created. */
void call_wait(struct call *call, struct event *event, uint32_t quantity);
void call_wait_change(struct call *call, struct event *event, enum wait_change_kind kind,
                      const struct id *entry);
void call_wait_terms(struct call *call, int64_t offer_ttl_ms);
void call_key(struct call *call, uint8_t key); /* sets an idempotency key made from this number */
bool call_done(const struct call *call);       /* answered with a success */
void call_give_event(struct call *call);       /* before the engine stops, if it is closed later */
void call_close(struct call *call);

#endif
