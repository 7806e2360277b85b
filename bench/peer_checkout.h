/* The checkout of the articles, for peer.c: each step in a transaction of its own, on PostgreSQL or
 * on SQLite, with the same statements.
 *
 *   hold      BEGIN, SELECT ... FOR UPDATE, UPDATE of the seat, COMMIT
 *   booking   INSERT of a pending booking; a call to the provider, which creates the intent;
 *             UPDATE that stores the intent
 *   webhook   INSERT of the event's id; BEGIN, UPDATE of the booking, UPDATE of the seat, COMMIT
 *
 * That is five commits per checkout.  There is no audit log, no job that repeats a lost call, no
 * idempotency key, no email, no index but the primary keys.  On SQLite a mutex admits one
 * transaction at a time: without it, the connections would find the file locked and sleep.
 *
 * A hold's id has the seat in it, and a payment's id is that of the booking, so that nothing has to
 * be looked up by a second index. */
#ifndef HF_BENCH_PEER_CHECKOUT_H
#define HF_BENCH_PEER_CHECKOUT_H

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/hold_parse.h"
#include "base/clock.h"
#include "checkout/signature.h"
#include "lab/runner.h"
#include "lab/stage.h"
#include "net/http_client.h"

#define CHECKOUT_PRICE "5000"

/* What all workers share. */
static struct {
    const char *provider; /* its URL; NULL: the peer has no checkout */
    struct signature_secrets secrets;
    pthread_mutex_t one_writer; /* of SQLite */
} checkout = {.one_writer = PTHREAD_MUTEX_INITIALIZER};

struct till {
    struct runner *runner;
    struct http_client *client;
    struct strategy_outcome outcome;
    struct random random;
};

static const char checkout_schema[] =
    "DROP TABLE IF EXISTS bookings; DROP TABLE IF EXISTS webhook_events;"
    "CREATE TABLE bookings (id varchar(64) PRIMARY KEY, event text NOT NULL, seat text NOT NULL,"
    " holder text NOT NULL, status text NOT NULL, amount bigint NOT NULL, intent text);"
    "CREATE TABLE webhook_events (id varchar(64) PRIMARY KEY, type text NOT NULL);";

/* Parameters are numbered in the order of their first use, as SQLite counts them. */
static const char sql_lock[] = "SELECT status FROM seats WHERE event = $1 AND id = $2 FOR UPDATE";
static const char sql_look[] = "SELECT status FROM seats WHERE event = $1 AND id = $2";
static const char sql_hold[] = "UPDATE seats SET status = 'HELD', holder = $1, held_until ="
                               " now() + interval '480 seconds' WHERE event = $2 AND id = $3";
static const char sql_hold_sqlite[] = "UPDATE seats SET status = 'HELD', holder = $1, held_until ="
                                      " unixepoch() + 480 WHERE event = $2 AND id = $3";
static const char sql_book[] =
    "INSERT INTO bookings (id, event, seat, holder, status, amount)"
    " SELECT $1, event, id, holder, 'PENDING', " CHECKOUT_PRICE " FROM seats"
    " WHERE event = $2 AND id = $3 AND holder = $4 AND status = 'HELD'";
static const char sql_intent[] = "UPDATE bookings SET intent = $1 WHERE id = $2";
static const char sql_event[] =
    "INSERT INTO webhook_events (id, type) VALUES ($1, $2) ON CONFLICT DO NOTHING";
static const char sql_confirm[] =
    "UPDATE bookings SET status = 'CONFIRMED' WHERE id = $1 AND status = 'PENDING'";
static const char sql_sell[] = "UPDATE seats SET status = 'BOOKED' FROM bookings b"
                               " WHERE b.id = $1 AND seats.event = b.event AND seats.id = b.seat"
                               " AND seats.holder = b.holder AND seats.status = 'HELD'";

/* ---- transactions ---- */

static void till_begin(struct till *t)
{
    t->outcome = (struct strategy_outcome){0};
    t->runner->outcome = &t->outcome;
    t->runner->failed = false;
    if (t->runner->sqlite)
        pthread_mutex_lock(&checkout.one_writer);
}

/* Ends what till_begin began; a transaction that is still open is rolled back. */
static bool till_end(struct till *t, bool good)
{
    struct runner *r = t->runner;
    good = good && !runner_failed(r);
    runner_end(r);
    if (r->sqlite)
        pthread_mutex_unlock(&checkout.one_writer);
    return good;
}

static unsigned till_failed(struct till *t, struct buf *out, const char *what)
{
    (void)fprintf(stderr, "peer: %s: %s\n", what, t->outcome.why);
    buf_lit(out, "{\"code\":\"internal\"}");
    return 500;
}

static void till_id(struct till *t, char ret[33])
{
    (void)snprintf(ret, 33, "%016llx%016llx", (unsigned long long)random_u64(&t->random),
                   (unsigned long long)random_u64(&t->random));
}

/* ---- steps ---- */

static unsigned till_hold(struct till *t, const struct hold_body *body, struct buf *out)
{
    struct runner *r = t->runner;
    char random[33], event[64], seat[64], hold[200];
    till_id(t, random);
    (void)snprintf(event, sizeof event, "%.*s", (int)body->event.len, body->event.data);
    (void)snprintf(seat, sizeof seat, "%.*s", (int)body->seats[0].len, body->seats[0].data);
    (void)snprintf(hold, sizeof hold, "hold_%s.%s.%s", random, event, seat);
    till_begin(t);
    bool is_free = runner_do(r, "BEGIN") &&
                   runner_all_available(r, 1, r->sqlite ? sql_look : sql_lock, event, seat, NULL);
    bool good =
        is_free &&
        runner_change(r, r->sqlite ? sql_hold_sqlite : sql_hold, random, event, seat, NULL) == 1 &&
        runner_do(r, "COMMIT");
    bool failed = runner_failed(r);
    if (!till_end(t, good)) {
        if (failed)
            return till_failed(t, out, "hold");
        buf_lit(out, "{\"code\":\"seat_taken\"}");
        return 409;
    }
    int64_t now = clock_wall_us(&clock_system) / 1000;
    buf_printf(out,
               "{\"object\":\"hold\",\"id\":\"%s\",\"event\":\"%s\",\"status\":\"active\","
               "\"owner\":null,\"fence\":1,\"seats\":[\"%s\"],\"areas\":{},"
               "\"amount\":" CHECKOUT_PRICE ",\"currency\":\"usd\",\"booking\":null,"
               "\"created_at\":",
               hold, event, seat);
    buf_json_time(out, now);
    buf_lit(out, ",\"expires_at\":");
    buf_json_time(out, now + 480000);
    buf_lit(out, ",\"expires_in_ms\":480000,\"max_expires_at\":");
    buf_json_time(out, now + 1200000);
    buf_lit(out, "}");
    return 201;
}

/* Creates the intent; writes its id. */
static bool create_intent(struct till *t, const char *id, char *ret, size_t size)
{
    struct buf url = {0}, form = {0};
    struct http_response response = {0};
    buf_printf(&url, "%s/v1/payment_intents", checkout.provider);
    buf_char(&url, '\0');
    buf_printf(&form,
               "amount=" CHECKOUT_PRICE "&currency=usd&payment_method_types%%5B%%5D=card"
               "&metadata%%5Bholdfast_payment%%5D=pay_%s",
               id);
    const struct http_header headers[] = {
        {"Authorization", "Bearer sk_test_bench"},
        {"Content-Type", "application/x-www-form-urlencoded"},
        {"Idempotency-Key", id},
    };
    struct hf_err err = {0};
    struct http_request request = {.method = "POST",
                                   .url = url.data,
                                   .headers = headers,
                                   .n_headers = 3,
                                   .body = form.data,
                                   .body_len = form.len,
                                   .is_repeatable = true};
    bool good =
        http_client_call(t->client, &request, &response, &err) == HF_OK && response.status == 200;
    json_t *intent = good ? json_loadb(response.body.data, response.body.len, 0, NULL) : NULL;
    const char *text = json_string_value(json_object_get(intent, "id"));
    good = text && (size_t)snprintf(ret, size, "%s", text) < size;
    json_decref(intent);
    http_response_close(&response);
    buf_close(&url);
    buf_close(&form);
    return good;
}

static unsigned till_book(struct till *t, const struct buf *body, struct buf *out)
{
    struct runner *r = t->runner;
    json_t *json = json_loadb(body->data, body->len, 0, NULL);
    const char *hold = json_string_value(json_object_get(json, "hold"));
    char holder[64], event[64], seat[64], id[33], intent[64] = "";
    bool good = hold && sscanf(hold, "hold_%63[^.].%63[^.].%63s", holder, event, seat) == 3;
    json_decref(json);
    if (!good) {
        buf_lit(out, "{\"code\":\"no_such_hold\"}");
        return 404;
    }
    till_id(t, id);
    till_begin(t);
    if (!till_end(t, runner_change(r, sql_book, id, event, seat, holder, NULL) == 1))
        return till_failed(t, out, "booking");
    if (!create_intent(t, id, intent, sizeof intent))
        return till_failed(t, out, "the provider");
    till_begin(t);
    if (!till_end(t, runner_change(r, sql_intent, intent, id, NULL) == 1))
        return till_failed(t, out, "intent");
    buf_printf(out,
               "{\"object\":\"booking\",\"id\":\"bkg_%s\",\"status\":\"pending\",\"event\":\"%s\","
               "\"seats\":[\"%s\"],\"areas\":{},\"amount\":" CHECKOUT_PRICE
               ",\"currency\":\"usd\",\"reference\":null,\"number\":null,\"payment\":{\"id\":"
               "\"pay_%s\",\"provider\":\"stripe\",\"status\":\"requires_payment\",\"intent\":"
               "\"%s\",\"client_secret\":\"%s_secret_bench\",\"publishable_key\":"
               "\"pk_test_bench\",\"api\":null},\"expires_at\":",
               id, event, seat, id, intent, intent);
    buf_json_time(out, clock_wall_us(&clock_system) / 1000 + 480000);
    buf_lit(out, "}");
    return 201;
}

static unsigned till_webhook(struct till *t, const char *signature, const struct buf *body,
                             struct buf *out)
{
    struct runner *r = t->runner;
    int64_t now_s = clock_wall_us(&clock_system) / 1000000;
    if (signature_check_stripe(signature, &checkout.secrets, body->data, body->len, now_s) !=
        SIGNATURE_GOOD) {
        buf_lit(out, "{\"code\":\"bad_signature\"}");
        return 400;
    }
    json_t *event = json_loadb(body->data, body->len, 0, NULL);
    const json_t *intent = json_object_get(json_object_get(event, "data"), "object");
    const char *id = json_string_value(json_object_get(event, "id"));
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *payment =
        json_string_value(json_object_get(json_object_get(intent, "metadata"), "holdfast_payment"));
    unsigned status = 200;
    bool is_ours = id && type && payment && strncmp(payment, "pay_", 4) == 0;
    const char *booking = is_ours ? payment + 4 : "";
    if (is_ours) {
        till_begin(t);
        long n = runner_change(r, sql_event, id, type, NULL);
        if (!till_end(t, n >= 0))
            status = till_failed(t, out, "webhook");
        is_ours = n == 1;
    }
    if (is_ours && status == 200) {
        till_begin(t);
        if (!till_end(t,
                      runner_do(r, "BEGIN") && runner_change(r, sql_confirm, booking, NULL) == 1 &&
                          runner_change(r, sql_sell, booking, NULL) == 1 && runner_do(r, "COMMIT")))
            status = till_failed(t, out, "confirm");
    }
    json_decref(event);
    if (status == 200)
        buf_lit(out, "{\"received\":true}");
    return status;
}

/* ---- life ---- */

/* Adds a row of seats to an event. */
static bool till_add_row(struct till *t, const char *event, const char *prefix, const char *n_seats)
{
    static const char sql[] = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n"
                              " WHERE n < CAST($1 AS integer)) INSERT INTO seats (event, id)"
                              " SELECT CAST($2 AS text), CAST($3 AS text) || n FROM n";
    return runner_change(t->runner, sql, n_seats, event, prefix, NULL) > 0;
}

/* Adds a section whose rows have these names. */
static bool till_add_section(struct till *t, const struct stage_section *s)
{
    char prefix[80], n_seats[16];
    (void)snprintf(n_seats, sizeof n_seats, "%d", s->seats_per_row);
    till_begin(t);
    bool good = runner_do(t->runner, "BEGIN");
    for (size_t i = 0; good && i < s->n_rows; i++) {
        (void)snprintf(prefix, sizeof prefix, "%s-%s-", s->section, s->rows[i]);
        good = till_add_row(t, s->event, prefix, n_seats);
    }
    return till_end(t, good && runner_do(t->runner, "COMMIT"));
}

static bool till_build(struct till *t)
{
    till_begin(t);
    return till_end(t, runner_do(t->runner, checkout_schema));
}

static struct till *till_open(const struct strategy_settings *settings, struct hf_err *err)
{
    static const struct strategy on_postgres = {.needs = STRATEGY_NEEDS_POSTGRES},
                                 on_sqlite = {.needs = STRATEGY_NEEDS_SQLITE};
    struct till *t = hf_alloc(sizeof *t);
    if (!runner_open(settings->sqlite ? &on_sqlite : &on_postgres, settings, &t->runner, err)) {
        free(t);
        return NULL;
    }
    t->client = http_client_new(NULL);
    random_init_system(&t->random);
    return t;
}

static void till_close(struct till *t)
{
    runner_close(t->runner);
    http_client_free(t->client);
    free(t);
}

#endif
