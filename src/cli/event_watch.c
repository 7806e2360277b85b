/* See event_watch.h.  A lost connection is made again and goes on from the last message, as a
 * browser's EventSource does.  Main thread. */
#include "cli/event_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "cli/render.h"
#include "net/sse.h"

#define RETRY_MS 1000
#define RETRY_MAX_MS 60000
#define MESSAGE_LEN_MAX ((size_t)64 << 20)

struct event_watch {
    struct resource_call *call;
    struct sse events;
    bool has_arrived; /* something, since this connection was made */
    bool is_full;     /* standard output takes no more */
};

/* ---- messages ---- */

static const char *status_word(const char *letter)
{
    static const struct {
        char letter;
        const char *word;
    } words[] = {{'.', "available"}, {'h', "held"}, {'b', "booked"}, {'x', "blocked"}};
    for (size_t i = 0; letter && i < sizeof words / sizeof *words; i++)
        if (*letter == words[i].letter)
            return words[i].word;
    return "?";
}

static void put_seats_message(struct buf *b, const json_t *message)
{
    const json_t *changes = json_object_get(message, "changes"), *change;
    const char *name;
    json_t *left, *areas = json_object_get(message, "areas");
    json_int_t seq = json_integer_value(json_object_get(message, "seq"));
    size_t i;
    json_array_foreach((json_t *)changes, i, change)
    {
        buf_printf(b, "%lld  ", (long long)seq);
        render_value(b, json_array_get(change, 0));
        buf_printf(b, "  %s\n", status_word(json_string_value(json_array_get(change, 1))));
    }
    json_object_foreach(areas, name, left)
    {
        buf_printf(b, "%lld  ", (long long)seq);
        render_text(b, name, strlen(name));
        buf_lit(b, "  ");
        render_value(b, left);
        buf_lit(b, " available\n");
    }
}

static void put_other_message(struct buf *b, const char *name, const json_t *message)
{
    render_text(b, name, strlen(name));
    buf_lit(b, "  ");
    render_value(b, message);
    buf_char(b, '\n');
}

static bool print_message(void *ctx, const char *name, const char *data)
{
    struct event_watch *w = ctx;
    struct buf b = {0};
    if (w->call->json) {
        buf_str(&b, data);
        buf_char(&b, '\n');
    } else {
        json_t *message = json_loads(data, JSON_DECODE_ANY, NULL);
        if (strcmp(name, "seats") == 0)
            put_seats_message(&b, message);
        else
            put_other_message(&b, *name ? name : "message", message);
        json_decref(message);
    }
    w->is_full = resource_print(w->call, &b) != EXIT_SUCCESS;
    return !w->is_full;
}

static bool on_body(void *ctx, const char *data, size_t len)
{
    struct event_watch *w = ctx;
    w->has_arrived = true;
    return sse_take(&w->events, data, len);
}

/* ---- connections ---- */

/* Reads the stream once.  Returns -1 if it is worth another try. */
static int follow_once(struct event_watch *w, const char *path, struct hf_err *err)
{
    struct resource_call *c = w->call;
    sse_begin(&w->events);
    w->has_arrived = false;
    enum hf_status status =
        remote_stream(&c->remote, path, w->events.last_id, on_body, w, &c->answer, err);
    if (w->is_full)
        return EXIT_NO_BACK_END;
    if (status == HF_INVALID_REQUEST) {
        cli_say(c->remote.command, "%s", err->msg);
        return EXIT_BAD_USAGE;
    }
    if (status != HF_OK)
        return -1;
    if (c->answer.status / 100 == 2) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "the server ended the stream");
        return -1;
    }
    if (c->answer.status >= 500) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "the server answers with status %d",
                         c->answer.status);
        return -1;
    }
    return remote_problem(&c->remote, &c->answer);
}

static int follow(struct event_watch *w, const char *path)
{
    struct resource_call *c = w->call;
    int64_t lost_us = 0;
    struct hf_err err = {0};
    for (bool is_first = true;; is_first = false) {
        int code = follow_once(w, path, &err);
        if (code >= 0)
            return code;
        int64_t now_us = wait_now_us();
        if (w->has_arrived || !lost_us)
            lost_us = now_us;
        bool is_hopeless = is_first && !w->has_arrived;
        if (is_hopeless || now_us - lost_us >= c->remote.timeout_ms * 1000) {
            cli_say(c->remote.command, "%s", err.msg);
            return EXIT_NO_BACK_END;
        }
        int64_t retry_ms = w->events.retry_ms;
        wait_sleep_us((retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS) * 1000);
    }
}

int event_watch(struct resource_call *c)
{
    struct event_watch w = {.call = c,
                            .events = {.on_message = print_message,
                                       .ctx = &w,
                                       .len_max = MESSAGE_LEN_MAX,
                                       .retry_ms = RETRY_MS}};
    struct buf path = {0};
    resource_path(c, &path);
    int code = follow(&w, path.data);
    buf_close(&path);
    sse_close(&w.events);
    return code;
}
