/* The whole API, on a real engine and a real lock service with SQLite files in a temporary
 * directory: the bodies, queries and keys of every route.  An input is a few requests, separated by
 * the byte 0x1e.  The first byte of each picks the route and the method.  The line that follows is
 * a query; after `!` it is an idempotency key, after `/` an id instead of a known one.  The rest is
 * the body, in which $E, $H, $B and $S stand for the event, the hold, the booking and the session
 * that answers named last.
 *
 * Every request gets one answer: JSON, or a problem document that names the request.  Nothing is
 * ever an internal error, and after some hundred inputs the ledger's invariants hold. */
#include "fuzz.h"

#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "api/api.h"
#include "api/routes.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "checkout/checkout.h"
#include "ledger/verify.h"
#include "setup/locks.h"
#include "support/site.h"

#define SEPARATOR 0x1e
#define LINE_MAX_LEN 400
enum { INPUTS_A_WORLD = 400, REQUESTS_MAX = 8, ENDPOINTS_MAX = 160 };
enum { TURN_US = 1000, TURNS_MAX = 9000, LOCK_TURNS_MAX = 50 };

static struct endpoint {
    const char *method, *path;
    bool has_body, may_wait;
} endpoints[ENDPOINTS_MAX];
static size_t n_endpoints;

/* Whatever $E, $H, $B and $S stand for. */
static struct known {
    char letter;
    const char *prefix, *path;
    char id[ID_TEXT_SIZE];
} known[] = {
    {'E', "evt_", "/v1/events/", ""},
    {'H', "hold_", "/v1/holds/", ""},
    {'B', "bkg_", "/v1/bookings/", ""},
    {'S', "ses_", "/v1/sessions/", ""},
};
#define KNOWN (sizeof known / sizeof *known)

static struct {
    bool open;
    unsigned inputs;
    char dir[32], url[64];
    struct metrics *metrics;
    struct checkout *checkout;
    struct engine *engine;
    struct locks locks;
    struct access access;
    struct api api;
    struct http_app app;
    struct site site; /* its server and its loop, for its clients */
} world;

/* ---- the server ---- */

static void add_endpoint(const struct route *r, const char *method, step_fn handler)
{
    if (!handler || (r->streams && strcmp(method, "GET") == 0))
        return;
    hf_check(n_endpoints < ENDPOINTS_MAX);
    endpoints[n_endpoints++] = (struct endpoint){
        .method = method,
        .path = r->path,
        .has_body = strcmp(method, "GET") != 0 && strcmp(method, "DELETE") != 0,
        .may_wait = strcmp(r->path, "/v1/locks/*") == 0 && strcmp(method, "POST") == 0,
    };
}

static void list_endpoints(void)
{
    for (const struct route *r = api_routes; r->path; r++) {
        add_endpoint(r, "GET", r->get);
        add_endpoint(r, "POST", r->post);
        add_endpoint(r, "PUT", r->put);
        add_endpoint(r, "PATCH", r->patch);
        add_endpoint(r, "DELETE", r->del);
    }
}

static void open_parts(void)
{
    struct hf_err err = {0};
    const struct checkout_config payments = {
        .clock = &clock_system, .metrics = world.metrics, .render_notice = api_render_notice};
    const struct lock_options locks = {0};
    hf_check(checkout_new(&payments, &world.checkout, &err) == HF_OK);
    api_set_payments(checkout_settings(world.checkout));
    const struct engine_config engine = {
        .ledger_url = world.url,
        .clock = &clock_system,
        .metrics = world.metrics,
        .texts = api_texts,
        .jobs_made = checkout_jobs_made,
        .jobs_context = world.checkout,
        .hands_jobs_over = checkout_takes_at_once(world.checkout),
    };
    hf_check(engine_start(&engine, &world.engine, &err) == HF_OK);
    hf_check(checkout_start(world.checkout, world.engine, &err) == HF_OK);
    hf_check(locks_start(&world.locks, &locks, world.dir, "http://127.0.0.1:1", &clock_system,
                         world.metrics, &err) == HF_OK);
}

/* In memory, where the machine has such a place, so that the runs do not wait for a disk. */
static void make_dir(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    bool made = false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !made; i++) {
        (void)snprintf(world.dir, sizeof world.dir, "%s/holdfast-fuzz-XXXXXX", places[i]);
        made = mkdtemp(world.dir) != NULL;
    }
    hf_check(made);
}

static void world_open(void)
{
    struct hf_err err = {0};
    memset(&world, 0, sizeof world);
    make_dir();
    (void)snprintf(world.url, sizeof world.url, "sqlite:%s/holdfast.db", world.dir);
    world.metrics = metrics_new();
    open_parts();
    world.api = (struct api){
        .wait_topics = api_wait_topics_new(&clock_system),
        .engine = world.engine,
        .checkout = world.checkout,
        .metrics = world.metrics,
        .samples = api_samples_new(world.metrics, &clock_system),
        .clock = &clock_system,
    };
    locks_serve(&world.locks, &world.api);
    world.app = api_app(&world.api);
    world.site.server = server_new(&(struct server_config){.listen_fd = -1,
                                                           .stream_fd = -1,
                                                           .threads = 1,
                                                           .app = &world.app,
                                                           .metrics = world.metrics,
                                                           .clock = &clock_system,
                                                           .access = &world.access},
                                   &err);
    hf_check(world.site.server);
    world.site.loop = &world.site.server->loops[0];
    world.open = true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void ledger_is_sound(void)
{
    static struct verify_report report;
    struct hf_err err = {0};
    report = (struct verify_report){0};
    hf_check(ledger_verify(world.url, &clock_system, &report, &err) == HF_OK);
    hf_check(report.violations == 0);
}

static void world_close(void)
{
    if (!world.open)
        return;
    atomic_store(&world.site.server->draining, true);
    locks_drain(&world.locks);
    for (int i = 0; i < TURNS_MAX && site_connections(&world.site) > 0; i++)
        loop_turn(world.site.loop, TURN_US);
    checkout_stop(world.checkout);
    engine_drain(world.engine);
    server_free(world.site.server);
    locks_stop(&world.locks);
    checkout_free(world.checkout);
    engine_stop(world.engine);
    samples_free(world.api.samples);
    metrics_free(world.metrics);
    ledger_is_sound();
    (void)nftw(world.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    world.open = false;
}

/* ---- requests ---- */

struct part {
    const char *data;
    size_t len;
};

/* Takes everything up to `end`, or up to the end of the text. */
static struct part take_until(struct part *rest, int end)
{
    const char *found = rest->len ? memchr(rest->data, end, rest->len) : NULL;
    struct part part = {rest->data, found ? (size_t)(found - rest->data) : rest->len};
    size_t used = part.len + (found != NULL);
    *rest = (struct part){rest->data + used, rest->len - used};
    return part;
}

/* Writes the characters of a line that may be in a target or in a field. */
static void put_visible(struct buf *out, struct part line)
{
    for (size_t i = 0; i < line.len && i < LINE_MAX_LEN; i++)
        if (line.data[i] > ' ' && line.data[i] < 0x7f && line.data[i] != '#')
            buf_char(out, line.data[i]);
}

static const char *known_id(const char *path)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strncmp(path, known[i].path, strlen(known[i].path)) == 0)
            return known[i].id[0] ? known[i].id : "none";
    return strncmp(path, "/v1/locks/", 10) == 0 ? "a" : "0123456789abcdef";
}

static void put_target(struct buf *out, const char *path, struct part line)
{
    bool is_id = line.len && line.data[0] == '/', first = true;
    for (const char *p = path; *p; p++) {
        if (*p != '*') {
            buf_char(out, *p);
        } else if (first && is_id) {
            put_visible(out, (struct part){line.data + 1, line.len - 1});
        } else {
            buf_str(out, first ? known_id(path) : "S-A-1");
        }
        first = first && *p != '*';
    }
    if (line.len && !is_id && line.data[0] != '!') {
        buf_char(out, '?');
        put_visible(out, line);
    }
}

static void put_body(struct buf *out, struct part body)
{
    for (size_t i = 0; i < body.len; i++) {
        const struct known *k = NULL;
        for (size_t n = 0; body.data[i] == '$' && i + 1 < body.len && n < KNOWN; n++)
            if (known[n].letter == body.data[i + 1])
                k = &known[n];
        if (k) {
            buf_str(out, k->id);
            i++;
        } else {
            buf_char(out, body.data[i]);
        }
    }
}

static void put_request(struct buf *out, const struct endpoint *e, struct part text)
{
    struct part line = take_until(&text, '\n');
    struct buf body = {0};
    if (e->has_body)
        put_body(&body, text);
    buf_printf(out, "%s ", e->method);
    put_target(out, e->path, line);
    buf_lit(out, " HTTP/1.1\r\nHost: localhost\r\n");
    if (line.len && line.data[0] == '!') {
        buf_lit(out, "Idempotency-Key: ");
        put_visible(out, (struct part){line.data + 1, line.len - 1});
        buf_lit(out, "\r\n");
    }
    buf_printf(out, "Content-Length: %zu\r\n\r\n", body.len);
    buf_put(out, body.data, body.len);
    buf_close(&body);
}

/* ---- answers ---- */

/* Remembers the first id of each kind that an answer has. */
static void learn(struct text body)
{
    static const char mark[] = "\"id\":\"";
    for (size_t i = 0; i < KNOWN; i++) {
        char wanted[16];
        int len = snprintf(wanted, sizeof wanted, "%s%s", mark, known[i].prefix);
        const char *at = body.len ? memmem(body.data, body.len, wanted, (size_t)len) : NULL;
        if (!at)
            continue;
        at += sizeof mark - 1;
        size_t id_len = strcspn(at, "\"");
        hf_check(id_len < sizeof known[i].id);
        memcpy(known[i].id, at, id_len);
        known[i].id[id_len] = '\0';
    }
}

static bool has_type(const struct reply *r, const char *type)
{
    struct text value = reply_header(r, "Content-Type");
    return value.len >= strlen(type) && memcmp(value.data, type, strlen(type)) == 0;
}

static void check_answer(const struct reply *r)
{
    struct text id = reply_header(r, "X-Request-Id");
    hf_check(id.len == REQUEST_ID_LEN && r->status != 500);
    if (r->status >= 400)
        hf_check(has_type(r, "application/problem+json"));
    if (!has_type(r, "application/problem+json") && !has_type(r, "application/json"))
        return;
    json_t *json = json_loadb(r->body.data, r->body.len, JSON_REJECT_DUPLICATES, NULL);
    hf_check(json_is_object(json));
    const char *named = json_string_value(json_object_get(json, "request_id"));
    hf_check(r->status < 400 ||
             (named && strlen(named) == id.len && !memcmp(named, id.data, id.len)));
    json_decref(json);
}

/* Sends a request on a connection of its own, and waits for the answer. */
static void ask(const struct endpoint *e, struct part text)
{
    struct buf request = {0};
    struct client client;
    struct reply reply = {0};
    size_t sent = 0;
    bool answered = false;
    client_open(&client, &world.site, 0);
    put_request(&request, e, text);
    for (int i = 0; !answered && i < (e->may_wait ? LOCK_TURNS_MAX : TURNS_MAX); i++) {
        sent += client_write(&client, request.data + sent, request.len - sent);
        loop_turn(world.site.loop, i > 2 ? TURN_US : 0);
        while (client_read(&client, 65536) > 0)
            ;
        answered = client_take(&client, false, &reply);
    }
    hf_check(answered || e->may_wait);
    if (answered) {
        check_answer(&reply);
        learn(reply.body);
    }
    buf_close(&request);
    client_close(&client);
    site_turn(&world.site, 2);
}

/* An event of its own for each input, so that it can be repeated by itself. */
static void create_event(void)
{
    static const char body[] =
        "\n{\"name\":\"E\",\"currency\":\"usd\",\"sections\":[{\"name\":\"S\",\"price\":100,"
        "\"rows\":2,\"seats_per_row\":4}],\"areas\":[{\"name\":\"F\",\"price\":50,\"capacity\":9}]"
        "}";
    static const struct endpoint events = {
        .method = "POST", .path = "/v1/events", .has_body = true};
    for (size_t i = 0; i < KNOWN; i++)
        known[i].id[0] = '\0';
    ask(&events, (struct part){body, sizeof body - 1});
    hf_check(known[0].id[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct part rest = {(const char *)data, size};
    if (n_endpoints == 0) {
        log_set_level(LOG_OFF);
        list_endpoints();
        hf_check(atexit(world_close) == 0);
    }
    if (!world.open)
        world_open();
    create_event();
    for (int i = 0; i < REQUESTS_MAX && rest.len > 0; i++) {
        struct part request = take_until(&rest, SEPARATOR);
        if (request.len == 0)
            continue;
        uint8_t pick = (uint8_t)request.data[0];
        ask(&endpoints[pick % n_endpoints], (struct part){request.data + 1, request.len - 1});
    }
    if (++world.inputs == INPUTS_A_WORLD)
        world_close();
    return 0;
}
