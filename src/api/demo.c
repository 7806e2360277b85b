/* See demo.h.  On the main thread. */
#include "api/demo.h"

#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include "api/render.h"
#include "base/log.h"
#include "venue/event_parse.h"
#include "view/view.h"

/* demo_event.S: a whole body of POST /v1/events */
extern const char demo_event_json[], demo_event_json_end[];

static void post_done(struct pending *pending) { (void)sem_post(pending->waiter); }

/* Submits the command and waits until it has been carried out. */
static enum verdict run_command(struct engine *e, struct command *command)
{
    sem_t done;
    hf_check(sem_init(&done, 0, 0) == 0);
    command->pending = (struct pending){.done = post_done, .waiter = &done};
    enum hf_status status = engine_submit(e, command);
    if (status != HF_OK)
        command->verdict = verdict_of(status);
    while (status == HF_OK && sem_wait(&done) != 0 && errno == EINTR)
        ;
    (void)sem_destroy(&done);
    return command->verdict;
}

/* Finds and pins the newest event; *ret is NULL if there is none. */
static bool newest_event(struct engine *e, struct event **ret, struct hf_err *err)
{
    struct command command = {.kind = CMD_EVENT_LIST};
    struct event_list *list = hf_alloc(sizeof *list);
    list->query.limit = 1;
    command.event_list = list;
    enum verdict verdict = run_command(e, &command);
    list = command.event_list;
    int64_t key = list->n ? list->events[0].def->id.key : 0;
    command_close(&command);
    if (verdict == VERDICT_OK && key) {
        command = (struct command){.kind = CMD_EVENT_LOAD, .event_key = key};
        verdict = run_command(e, &command);
    }
    if (verdict == VERDICT_OK)
        *ret = key ? command.pinned : NULL;
    else
        (void)hf_err_set(err, HF_INTERNAL, "the events cannot be read: %s", verdict_text(verdict));
    return verdict == VERDICT_OK;
}

static bool create_event(struct engine *e, struct hf_err *err)
{
    struct command command = {.kind = CMD_EVENT_CREATE};
    json_t *json =
        json_loadb(demo_event_json, (size_t)(demo_event_json_end - demo_event_json), 0, NULL);
    hf_check(json && parse_event(json, &command.event_create, err));
    json_decref(json);
    enum verdict verdict = run_command(e, &command);
    if (!verdict_is_success(verdict))
        (void)hf_err_set(err, HF_INTERNAL, "it is not stored: %s", verdict_text(verdict));
    command_close(&command);
    return verdict_is_success(verdict);
}

bool demo_event(struct engine *e, struct event **ret, struct hf_err *err)
{
    struct event *found = NULL;
    if (!newest_event(e, &found, err) ||
        (!found && !(create_event(e, err) && newest_event(e, &found, err))))
        return false;
    *ret = found;
    return true;
}

/* Appends two seats that can be held now, as a JSON list. */
static void put_free_seats(const struct event *e, struct buf *out)
{
    uint32_t seats[2], n = 0;
    for (uint32_t i = 0; i < e->def->n_seats && n < 2; i++)
        if (seat_shown_status(seat_shown(e, i)) == SEAT_AVAILABLE)
            seats[n++] = i;
    render_seats(e, seats, n, out);
}

void demo_say(struct event *event, const char *url, bool everybody_is_admin, bool has_pages)
{
    struct buf seats = {0};
    put_free_seats(event, &seats);
    buf_char(&seats, '\0');
    const char *id = event_id_text(event);
    log_print(STDOUT_FILENO, "\nTry it:\n");
    if (has_pages)
        log_print(STDOUT_FILENO, "  open %s/e/%s in a browser, and %s/ops in another\n", url, id,
                  url);
    log_print(STDOUT_FILENO,
              "  curl %s/v1/events/%s/seats\n"
              "  curl -X POST %s/v1/holds -d '{\"event\":\"%s\",\"seats\":%s}'\n"
              "  curl -N %s/v1/events/%s/stream\n",
              url, id, url, id, seats.data, url, id);
    if (everybody_is_admin)
        log_print(STDOUT_FILENO, "  curl %s/metrics\n", url);
    log_print(STDOUT_FILENO, "\n");
    buf_close(&seats);
    event_give(event);
}
