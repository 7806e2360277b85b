/* Holdfast itself, asked over HTTP: whoever comes while a batch is being committed is in the next
 * one, so a commit serves many, and who wants a seat that is known to be taken is refused before
 * any database hears of it.  What it does inside is in src/engine/command.h; what that costs, its
 * metrics say. */
#include "lab/engine.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/desk.h"

#define CREATED 201
#define CONFLICT 409

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    struct buf body = {0};
    buf_printf(&body, "{\"event\":\"%s\",\"owner\":\"%s\",\"seats\":[", want->event, want->user);
    for (size_t i = 0; i < want->n_seats; i++)
        buf_printf(&body, "%s\"%s\"", i ? "," : "", want->seats[i]);
    buf_str(&body, "]}");
    desk_window(d);
    int status = http_call(&d->http, "POST", "/v1/holds", &body, NULL);
    buf_close(&body);
    if (status != CREATED && status != CONFLICT) {
        char why[32];
        snprintf(why, sizeof why, "status %d", status);
        desk_fail(d, "Holdfast", status ? why : "no answer");
    }
    return status == CREATED;
}

const struct strategy strategy_engine = {
    .name = "holdfast",
    .summary = "Asks a Holdfast server, which decides in memory and commits a batch at a time.",
    .correct = true,
    .needs = STRATEGY_NEEDS_SERVER,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};

/* ---- the stage ---- */

static bool ask(const char *server, const char *method, const char *path, const struct buf *body,
                json_t **ret, struct hf_err *err)
{
    struct http http = {0};
    const char *answer = "";
    if (!http_ready(&http, server, DESK_TIMEOUT_S, err))
        return false;
    int status = http_call(&http, method, path, body, &answer);
    json_t *json = status == 200 || status == CREATED ? json_loads(answer, 0, NULL) : NULL;
    if (!json)
        (void)hf_err_set(err, HF_LEDGER_UNAVAILABLE, "Holdfast: %s %s: %d %.120s", method, path,
                         status, answer);
    http_close(&http);
    *ret = json;
    return json != NULL;
}

bool engine_stage(const char *server, int seats, char ret_event[STAGE_EVENT_SIZE],
                  struct hf_err *err)
{
    struct buf body = {0};
    json_t *event;
    buf_printf(
        &body,
        "{\"name\":\"Lab\",\"currency\":\"usd\",\"sections\":[{\"name\":\"S\",\"price\":5000,"
        "\"rows\":[{\"name\":\"A\",\"seats\":%d}]}]}",
        seats);
    bool good = ask(server, "POST", "/v1/events", &body, &event, err);
    buf_close(&body);
    if (!good)
        return false;
    const char *id = json_string_value(json_object_get(event, "id"));
    snprintf(ret_event, STAGE_EVENT_SIZE, "%s", id ? id : "");
    json_decref(event);
    return true;
}

static void take_hold(const json_t *hold, struct stage_sales *ret)
{
    const char *owner = json_string_value(json_object_get(hold, "owner"));
    const json_t *seats = json_object_get(hold, "seats");
    for (size_t i = 0; i < json_array_size(seats); i++)
        stage_sales_add(ret, json_string_value(json_array_get(seats, i)), owner ? owner : "");
}

bool engine_sales(const char *server, const char *event, struct stage_sales *ret,
                  struct hf_err *err)
{
    char path[512], cursor[256] = "";
    bool more = true;
    while (more) {
        json_t *page;
        snprintf(path, sizeof path, "/v1/holds?event=%s&status=active&limit=100%s%s", event,
                 cursor[0] ? "&cursor=" : "", cursor);
        if (!ask(server, "GET", path, NULL, &page, err))
            return false;
        const json_t *holds = json_object_get(page, "data");
        for (size_t i = 0; i < json_array_size(holds); i++)
            take_hold(json_array_get(holds, i), ret);
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
        (void)hf_err_set(err, HF_LEDGER_UNAVAILABLE, "Holdfast: no metric %s", name);
    return line != NULL;
}

bool engine_costs(const char *server, struct engine_costs *ret, struct hf_err *err)
{
    struct http http = {0};
    struct engine_costs costs;
    const char *text = "";
    if (!http_ready(&http, server, DESK_TIMEOUT_S, err))
        return false;
    (void)http_call(&http, "GET", "/metrics", NULL, &text);
    bool good = read_metric(text, "holdfast_commit_seconds_count", &costs.commits, err) &&
                read_metric(text, "holdfast_ledger_exchanges_total", &costs.sql_trips, err) &&
                read_metric(text, "holdfast_gate_exchanges_total", &costs.gate_trips, err);
    http_close(&http);
    if (good)
        *ret = costs;
    return good;
}
