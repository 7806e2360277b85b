/* POST /v1/owners/erase: forgets an owner in every hold, booking, entry of a waiting list and stored
 * answer.  The sales stay.  On HTTP threads. */
#include "api/idempotency.h"
#include "api/routes.h"
#include "view/view.h"
#include "json/fields.h"

static bool read_erase(struct call *c, const char **ret, size_t *ret_len, struct hf_err *err)
{
    static const char *const known[] = {"owner", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_text(&f, "owner", REQUIRED, 1, HOLD_OWNER_CHARS_MAX, ret, ret_len);
}

/* ---- what waits is ended first, so that nothing is offered to an owner that is forgotten ---- */

static void list_waits(struct call *c, int64_t before);
static void end_next(struct request *r);

/* Begins another command of the same request.  The text of the owner is in the body. */
static struct command *next_command(struct call *c, enum command_kind kind)
{
    command_close(&c->command);
    c->command = (struct command){.kind = kind};
    return &c->command;
}

static void erase(struct call *c)
{
    const char *owner;
    size_t owner_len;
    struct hf_err err;
    hf_check(read_erase(c, &owner, &owner_len, &err)); /* as it did before */
    struct command *command = next_command(c, CMD_OWNER_ERASE);
    command->owner_erase.owner = owner;
    command->owner_erase.owner_len = owner_len;
    command->key = c->waits.key;
    c->waits.key = (struct idempotency){0};
    call_submit(c, call_answer);
}

static void wait_ended(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_OK && c->command.verdict != VERDICT_NO_SUCH_WAIT) {
        call_answer(r);
        return;
    }
    c->waits.n_done++;
    end_next(r);
}

/* Ends the next entry of the page, once its event is loaded; then reads the next page. */
static void end_next(struct request *r)
{
    struct call *c = call_of(r);
    const struct wait_page *page = c->waits.page;
    if (c->waits.n_done == page->n) {
        if (page->more)
            list_waits(c, page->waits[page->n - 1].id.key);
        else
            erase(c);
        return;
    }
    const struct wait_row *row = &page->waits[c->waits.n_done];
    struct event *e = call_loaded_event(c, row->event);
    if (!e && c->command.kind == CMD_EVENT_LOAD && c->command.event_key == row->event) {
        call_answer(r); /* the ledger failed */
        return;
    }
    const struct wait_change op = {
        .kind = WAIT_IS_ERASED, .id = {.key = row->id.key}, .is_internal = true};
    struct command *command = next_command(c, e ? CMD_WAIT_CHANGE : CMD_EVENT_LOAD);
    if (!e) {
        command->event_key = row->event;
        call_submit(c, end_next);
        return;
    }
    command->event = e;
    command->wait_change = op;
    call_submit(c, wait_ended);
}

static void waits_listed(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    wait_page_free(c->waits.page);
    c->waits.page = c->command.wait_list;
    c->waits.n_done = 0;
    c->command.wait_list = NULL;
    c->command.kind = CMD_NONE;
    end_next(r);
}

/* Lists the owner's entries that wait, of all events, below a key. */
static void list_waits(struct call *c, int64_t before)
{
    struct waits_query query = {.status = WAIT_WAITING, .before = before, .limit = WAITS_LIST_MAX};
    struct hf_err err;
    hf_check(read_erase(c, &query.owner, &query.owner_len, &err));
    struct command *command = next_command(c, CMD_WAIT_LIST);
    command->wait_list = hf_alloc(sizeof *command->wait_list);
    command->wait_list->query = query;
    call_submit(c, waits_listed);
}

void owners_erase(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    const char *owner;
    size_t owner_len;
    if (!idempotency_read(c))
        return;
    if (!read_erase(c, &owner, &owner_len, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    idempotency_hash_request(c);
    c->waits.key = c->command.key;
    c->command.key = (struct idempotency){0};
    list_waits(c, 0);
}
