/* Holdfast itself, asked over HTTP.  Requests that arrive while a batch is being committed go into
 * the next batch, so that one commit serves many buyers; a request for a seat that is known to be
 * taken is refused without asking any database.  src/engine/command.h leads to how that works; the
 * server's metrics say what it costs.
 *
 * `attempt` runs on the thread of its runner and is measured.  The functions of holdfastd.h run on
 * the main thread before and after that, over net/http_client.h. */
#include "lab/holdfastd.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/runner.h"
#include "net/http_client.h"

#define HTTP_CREATED 201
#define HTTP_CONFLICT 409
#define ANSWER_LEN_MAX ((size_t)16 << 20)

/* ---- the strategy ---- */

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    struct buf body = {0};
    buf_printf(&body, "{\"event\":\"%s\",\"owner\":\"%s\",\"seats\":[", want->event, want->user);
    for (size_t i = 0; i < want->n_seats; i++)
        buf_printf(&body, "%s\"%s\"", i ? "," : "", want->seats[i]);
    buf_str(&body, "]}");
    runner_window(r);
    int status = load_client_post(&r->server, "/v1/holds", &body);
    buf_close(&body);
    if (status != HTTP_CREATED && status != HTTP_CONFLICT) {
        char why[32];
        snprintf(why, sizeof why, "status %d", status);
        runner_fail(r, "Holdfast", status ? why : "no answer");
    }
    return status == HTTP_CREATED;
}

const struct strategy strategy_holdfast = {
    .name = "holdfast",
    .summary = "Asks a Holdfast server, which decides in memory and commits a batch at a time.",
    .correct = true,
    .several = true, /* on PostgreSQL */
    .needs = STRATEGY_NEEDS_SERVER,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};

/* ---- the stage ---- */

/* Sends one request on a connection of its own; any status but 200 and 201 is a failure. */
static bool ask(const char *server, const char *method, const char *path, const struct buf *body,
                struct http_response *ret, struct hf_err *err)
{
    struct buf url = {0};
    struct http_client *client = http_client_new(&(struct http_client_options){
        .timeout_ms = RUNNER_TIMEOUT_S * 1000, .body_len_max = ANSWER_LEN_MAX});
    buf_printf(&url, "%s%s", server, path);
    buf_char(&url, '\0');
    const struct http_request request = {.method = method,
                                         .url = url.data,
                                         .body = body ? body->data : NULL,
                                         .body_len = body ? body->len : 0};
    bool good = http_client_call(client, &request, ret, err) == HF_OK;
    if (good && ret->status != 200 && ret->status != HTTP_CREATED) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "Holdfast: %s %s: %d %.120s", method, path,
                         ret->status, ret->body.data);
        good = false;
    }
    buf_close(&url);
    http_client_free(client);
    return good;
}

static bool ask_json(const char *server, const char *method, const char *path,
                     const struct buf *body, json_t **ret, struct hf_err *err)
{
    struct http_response response = {0};
    json_t *json = NULL;
    if (ask(server, method, path, body, &response, err)) {
        json = json_loadb(response.body.data, response.body.len, 0, NULL);
        if (!json)
            (void)hf_err_set(err, HF_UNAVAILABLE, "Holdfast: %s %s: no JSON: %.120s", method, path,
                             response.body.data);
    }
    http_response_close(&response);
    *ret = json;
    return json != NULL;
}

bool holdfastd_stage(const char *server, int seats, char ret_event[STAGE_EVENT_SIZE],
                     struct hf_err *err)
{
    struct buf body = {0};
    json_t *event;
    buf_printf(
        &body,
        "{\"name\":\"Lab\",\"currency\":\"usd\",\"sections\":[{\"name\":\"S\",\"price\":5000,"
        "\"rows\":[{\"name\":\"A\",\"seats\":%d}]}]}",
        seats);
    bool good = ask_json(server, "POST", "/v1/events", &body, &event, err);
    buf_close(&body);
    if (!good)
        return false;
    const char *id = json_string_value(json_object_get(event, "id"));
    snprintf(ret_event, STAGE_EVENT_SIZE, "%s", id ? id : "");
    json_decref(event);
    return true;
}

static void add_sales_of_hold(const json_t *hold, struct stage_sales *sales)
{
    const char *owner = json_string_value(json_object_get(hold, "owner"));
    const json_t *seats = json_object_get(hold, "seats");
    for (size_t i = 0; i < json_array_size(seats); i++)
        stage_sales_add(sales, json_string_value(json_array_get(seats, i)), owner ? owner : "");
}

bool holdfastd_sales(const char *server, const char *event, struct stage_sales *ret,
                     struct hf_err *err)
{
    char path[512], cursor[256] = "";
    bool more = true;
    while (more) {
        json_t *page;
        snprintf(path, sizeof path, "/v1/holds?event=%s&status=active&limit=100%s%s", event,
                 cursor[0] ? "&cursor=" : "", cursor);
        if (!ask_json(server, "GET", path, NULL, &page, err))
            return false;
        const json_t *holds = json_object_get(page, "data");
        for (size_t i = 0; i < json_array_size(holds); i++)
            add_sales_of_hold(json_array_get(holds, i), ret);
        const char *next = json_string_value(json_object_get(page, "next_cursor"));
        snprintf(cursor, sizeof cursor, "%s", next ? next : "");
        more = json_is_true(json_object_get(page, "has_more"));
        json_decref(page);
    }
    return true;
}

static bool read_metric(const char *text, const char *name, double *ret, struct hf_err *err)
{
    char start[96];
    int len = snprintf(start, sizeof start, "\n%s ", name);
    const char *line = strstr(text, start);
    if (line)
        *ret = strtod(line + len, NULL);
    else
        (void)hf_err_set(err, HF_UNAVAILABLE, "Holdfast: no metric %s", name);
    return line != NULL;
}

bool holdfastd_costs(const char *server, struct holdfastd_costs *ret, struct hf_err *err)
{
    struct http_response response = {0};
    struct holdfastd_costs costs;
    bool good = ask(server, "GET", "/metrics", NULL, &response, err);
    const char *text = response.body.data;
    good = good && read_metric(text, "holdfast_commit_seconds_count", &costs.commits, err) &&
           read_metric(text, "holdfast_ledger_exchanges_total", &costs.sql_trips, err) &&
           read_metric(text, "holdfast_gate_exchanges_total", &costs.gate_trips, err);
    http_response_close(&response);
    if (good)
        *ret = costs;
    return good;
}
