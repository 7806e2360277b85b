/* GET /v1/refunds and GET /v1/notifications: what is owed and what was done, with ages.  On HTTP
 * threads; api_render_notice on the payment thread. */
#include <string.h>

#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "base/hex.h"
#include "base/log.h"
#include "checkout/notify.h"
#include "json/fields.h"

/* Reads limit and cursor.  Returns false if the call has been answered with 400. */
static bool read_page(struct call *c, size_t max, size_t *ret_limit, int64_t *ret_before)
{
    const char *cursor = request_query(&c->http, "cursor");
    if (cursor && !parse_digits(cursor, strlen(cursor), ret_before)) {
        page_bad_cursor(c);
        return false;
    }
    return page_limit(c, max, ret_limit);
}

/* ---- refunds ---- */

static void put_refund(const struct refund_entry *entry, int64_t now, struct buf *out)
{
    const struct refund_row *row = &entry->row;
    bool is_open = row->status == REFUND_OWED || row->status == REFUND_PENDING;
    buf_lit(out, "{\"object\":\"refund\"");
    json_put_id(out, "booking", "bkg_", &entry->booking);
    json_put_name(out, "number");
    render_number(entry->number, entry->booking.key, out);
    json_put_id(out, "payment", "pay_", &entry->payment);
    json_put_text_or_null(out, "status", refund_status_text(row->status));
    json_put_int(out, "amount", row->amount);
    json_put_text_or_null(out, "currency", entry->currency);
    json_put_text_or_null(out, "provider_refund", row->provider);
    json_put_text(out, "origin", row->is_ours ? "holdfast" : "provider");
    json_put_int(out, "attempts", entry->attempts);
    json_put_text_or_null(out, "last_error", *row->error ? row->error : entry->job_error);
    json_put_time_or_null(out, "next_attempt_at", row->status == REFUND_OWED ? entry->due_at : 0);
    json_put_time_or_null(out, "created_at", row->created_at);
    json_put_time_or_null(out, "updated_at", row->updated_at);
    json_put_int(out, "age_ms", (is_open ? now : row->updated_at) - row->created_at);
    buf_char(out, '}');
}

static void refunds_listed(struct request *r)
{
    struct call *c = call_of(r);
    char cursor[24];
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct refund_page *page = c->command.refund_list;
    page_open(c);
    for (size_t i = 0; i < page->n; i++) {
        page_next(c);
        put_refund(&page->entries[i], c->command.now, &r->out);
    }
    page_close(c, page->more ? log_int(cursor, page->entries[page->n - 1].row.refund) : NULL);
}

void refunds_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *status = request_query(r, "status");
    enum refund_status wanted = 0;
    size_t limit = PAGE_LIMIT_DEFAULT;
    int64_t before = 0;
    for (enum refund_status s = REFUND_OWED; status && s <= REFUND_FAILED; s++)
        if (strcmp(status, refund_status_text(s)) == 0)
            wanted = s;
    if (status && !wanted) {
        call_invalid(c, "status must be owed, pending, succeeded or failed");
        return;
    }
    if (!read_page(c, REFUNDS_LIST_MAX, &limit, &before))
        return;
    struct refund_page *page = hf_alloc(sizeof *page);
    page->limit = limit;
    page->before = before;
    page->status = wanted;
    c->command.kind = CMD_REFUND_LIST;
    c->command.refund_list = page;
    call_submit(c, refunds_listed);
}

/* ---- notifications ---- */

static void put_notice(const struct notice_entry *entry, int64_t now, struct buf *out)
{
    const struct job_row *row = &entry->row;
    char id[NOTIFY_ID_SIZE];
    notify_id(row, id);
    buf_lit(out, "{\"object\":\"notification\"");
    json_put_text(out, "id", id);
    json_put_text_or_null(out, "type", notice_text(row->notice));
    json_put_text_or_null(out, "status", job_status_text(row->status));
    if (entry->booking.key)
        json_put_id(out, "booking", "bkg_", &entry->booking);
    else
        json_put_text(out, "booking", NULL);
    json_put_int(out, "attempts", row->attempts);
    json_put_text_or_null(out, "last_error", row->error);
    json_put_time_or_null(out, "next_attempt_at", row->status == JOB_OWED ? row->due_at : 0);
    json_put_time_or_null(out, "created_at", row->created_at);
    json_put_time_or_null(out, "ended_at", row->ended_at);
    json_put_int(out, "age_ms", (row->ended_at ? row->ended_at : now) - row->created_at);
    buf_char(out, '}');
}

static void notifications_listed(struct request *r)
{
    struct call *c = call_of(r);
    char cursor[24];
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct notice_page *page = c->command.notice_list;
    page_open(c);
    for (size_t i = 0; i < page->n; i++) {
        page_next(c);
        put_notice(&page->entries[i], c->command.now, &r->out);
    }
    page_close(c, page->more ? log_int(cursor, page->entries[page->n - 1].row.job) : NULL);
}

void notifications_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *status = request_query(r, "status");
    enum job_status wanted = 0;
    size_t limit = PAGE_LIMIT_DEFAULT;
    int64_t before = 0;
    for (enum job_status s = JOB_OWED; status && s <= JOB_FAILED; s++)
        if (strcmp(status, job_status_text(s)) == 0)
            wanted = s;
    if (status && !wanted) {
        call_invalid(c, "status must be pending, delivered or failed");
        return;
    }
    if (!read_page(c, NOTICES_LIST_MAX, &limit, &before))
        return;
    struct notice_page *page = hf_alloc(sizeof *page);
    page->limit = limit;
    page->before = before;
    page->status = wanted;
    c->command.kind = CMD_NOTICE_LIST;
    c->command.notice_list = page;
    call_submit(c, notifications_listed);
}

/* The payload of a notification: the object as it stands when it is sent. */
void api_render_notice(const struct job_row *job, const struct command *command, struct buf *out)
{
    buf_char(out, '{');
    json_put_text(out, "type", notice_text(job->notice));
    json_put_time(out, "timestamp", job->created_at);
    json_put_name(out, "data");
    if (command->kind == CMD_WAIT_GET)
        render_wait(
            event_of(command), &command->wait_get.row,
            &(const struct wait_view){.now = command->now, .ahead = command->wait_get.ahead}, out);
    else if (command->kind == CMD_BOOKING_GET)
        render_booking(event_of(command), &command->booking_get.row, &command->booking_get.money,
                       false, out);
    else if (command->hold_list->n)
        render_hold(event_of(command), &command->hold_list->holds[0], command->now, false, out);
    else
        buf_lit(out, "null");
    buf_char(out, '}');
}
