/* See engine_client.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/engine_client.h"
#include "support/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_failure(enum verdict verdict)
{
    return verdict != VERDICT_OK && (int)verdict < (int)HF_STATUS_COUNT;
}

static void on_done(struct pending *pending)
{
    struct call *call = pending->waiter;
    struct client *client = call->client;
    if (client->on_failure && is_failure(call->c.verdict))
        client->on_failure(&call->c);
    pthread_mutex_lock(&client->lock);
    if (call->pauses) {
        client->paused = true;
        pthread_cond_broadcast(&client->wake);
        while (!client->go_on)
            pthread_cond_wait(&client->wake, &client->lock);
    }
    call->answers++;
    pthread_cond_broadcast(&client->wake);
    pthread_mutex_unlock(&client->lock);
}

/* Stands in for a rendered answer: the kind of the command and the ids that it got. */
static int render(const struct command *c, struct buf *out)
{
    char id[ID_TEXT_SIZE];
    buf_printf(out, "{\"kind\":%d", c->kind);
    if (c->kind != CMD_EVENT_CREATE) {
        id_format(id, "hold_", &command_hold(c)->id);
        buf_printf(out, ",\"hold\":\"%s\"", id);
    }
    buf_char(out, '}');
    return 1 + (int)c->verdict;
}

static void render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    buf_put(out, map->seats, e->def->n_seats);
}

enum hf_status client_start(struct client *client, const char *url, const struct clock *clock,
                            struct hf_err *err)
{
    return client_start_notifying(client, url, clock, 0, err);
}

enum hf_status client_start_notifying(struct client *client, const char *url,
                                      const struct clock *clock, unsigned notices,
                                      struct hf_err *err)
{
    const struct engine_config config = {.ledger_url = url, .clock = clock, .notices = notices};
    return client_start_with(client, &config, err);
}

enum hf_status client_start_with(struct client *client, const struct engine_config *given,
                                 struct hf_err *err)
{
    struct engine_config config = *given;
    *client = (struct client){.metrics = metrics_new()};
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->wake, NULL);
    config.metrics = client->metrics;
    config.texts = (struct engine_texts){.answer = render, .map = render_map};
    enum hf_status status = engine_start(&config, &client->engine, err);
    if (status != HF_OK)
        client_stop(client);
    return status;
}

void client_stop(struct client *client)
{
    engine_stop(client->engine);
    metrics_free(client->metrics);
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->wake);
    client->engine = NULL;
    client->metrics = NULL;
}

void client_put(struct client *client, struct call *call)
{
    call->client = client;
    call->answers = 0;
    call->c.pending = (struct pending){.done = on_done, .waiter = call};
    assert_int_equal(engine_submit(client->engine, &call->c), HF_OK);
}

enum verdict client_wait(struct call *call)
{
    struct client *client = call->client;
    pthread_mutex_lock(&client->lock);
    while (!call->answers)
        pthread_cond_wait(&client->wake, &client->lock);
    int answers = call->answers;
    pthread_mutex_unlock(&client->lock);
    assert_int_equal(answers, 1);
    return call->c.verdict;
}

enum verdict client_ask(struct client *client, struct call *call)
{
    client_put(client, call);
    return client_wait(call);
}

/* Answers are given on the worker's thread: while one is blocked there, new commands stay queued.
 */
void client_batch(struct client *client, int64_t event, struct call *const *calls, size_t n)
{
    struct call first;
    call_event_load(&first, event);
    first.pauses = true;
    client->paused = client->go_on = false;
    client_put(client, &first);
    pthread_mutex_lock(&client->lock);
    while (!client->paused)
        pthread_cond_wait(&client->wake, &client->lock);
    pthread_mutex_unlock(&client->lock);
    for (size_t i = 0; i < n; i++)
        client_put(client, calls[i]);
    pthread_mutex_lock(&client->lock);
    client->go_on = true;
    pthread_cond_broadcast(&client->wake);
    pthread_mutex_unlock(&client->lock);
    client_wait(&first);
    for (size_t i = 0; i < n; i++)
        client_wait(calls[i]);
    call_close(&first);
}

void call_event_create(struct call *call, uint32_t rows, uint32_t seats_per_row)
{
    struct event_def *def = hf_alloc(sizeof *def);
    *call = (struct call){.c.kind = CMD_EVENT_CREATE, .c.event_create = def};
    def->terms.name = hf_strndup("Gala", 4);
    memcpy(def->currency, "usd", 4);
    def->terms.hold_ttl_ms = 480000;
    def->terms.hold_max_ms = 1200000;
    def->terms.max_per_hold = 10;
    struct section_def *section = vec_push(&def->sections);
    section->name = hf_strndup("S", 1);
    *vec_push(&def->terms.prices) = 1000;
    for (uint32_t i = 0; i < rows; i++) {
        char name[16];
        struct row_def *row = vec_push(&section->rows);
        row->name = hf_strndup(name, (size_t)snprintf(name, sizeof name, "%u", i + 1));
        row->seats = seats_per_row;
    }
    struct area_def *area = vec_push(&def->areas);
    area->name = hf_strndup("Floor", 5);
    *vec_push(&def->terms.prices) = 500;
    area->capacity = 5;
    assert_true(event_def_number(def));
}

void call_event_load(struct call *call, int64_t event)
{
    *call = (struct call){.c.kind = CMD_EVENT_LOAD, .c.event_key = event};
}

void call_hold(struct call *call, struct event *event, uint32_t first, uint32_t n, int64_t ttl_ms)
{
    assert_in_range(n, 1, CALL_SEATS_MAX);
    *call = (struct call){.c.kind = CMD_HOLD_CREATE, .c.event = event};
    for (uint32_t i = 0; i < n; i++)
        call->seats[i] = first + i;
    call->c.create = (struct hold_create){
        .seats = call->seats, .n_seats = n, .ttl_ms = ttl_ms, .shortage.taken = call->taken};
}

void call_on_hold(struct call *call, enum command_kind kind, struct event *event,
                  const struct id *id)
{
    *call = (struct call){.c.kind = kind, .c.event = event};
    if (kind == CMD_BOOKING_GET)
        call->c.booking_get.id = *id;
    else if (kind == CMD_HOLD_GET)
        call->c.hold_get.id = *id;
    else
        command_named_hold(&call->c)->id = *id;
    if (kind == CMD_HOLD_EVICT)
        call->c.release.evicts = true;
}

void call_wait(struct call *call, struct event *event, uint32_t quantity)
{
    *call = (struct call){.c.kind = CMD_WAIT_JOIN, .c.event = event};
    call->c.wait_join.wish = (struct wait_wish){.quantity = quantity, .section = -1, .tier = -1};
}

void call_wait_change(struct call *call, struct event *event, enum wait_change_kind kind,
                      const struct id *entry)
{
    *call = (struct call){.c.kind = CMD_WAIT_CHANGE, .c.event = event};
    call->c.wait_change.kind = kind;
    call->c.wait_change.id = *entry;
}

void call_wait_terms(struct call *call, int64_t offer_ttl_ms)
{
    struct event_terms *terms = &call->c.event_create->terms;
    terms->offer_ttl_ms = offer_ttl_ms;
    terms->wait_alive_ms = INT64_C(86400000);
    terms->wait_per_owner = 10;
}

void call_key(struct call *call, uint8_t key)
{
    call->c.key.present = true;
    memset(call->c.key.hash, key, KEY_HASH_SIZE);
    memset(call->c.key.request, key, KEY_HASH_SIZE);
}

bool call_done(const struct call *call)
{
    return call->answers == 1 && verdict_is_success(call->c.verdict);
}

void call_give_event(struct call *call)
{
    event_give(call->c.pinned);
    call->c.pinned = NULL;
}

void call_close(struct call *call)
{
    command_close(&call->c);
    call->c.kind = CMD_NONE;
}
