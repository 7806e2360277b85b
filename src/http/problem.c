/* Problems as RFC 9457 has them.  Refusals are the commonest answer when a sale is on, so their
 * heads are literals made by the compiler and a problem is a handful of copies. */
#include <string.h>

#include "api/answer.h"
#include "api/parse.h"
#include "base/utf8.h"

const char type_problem[] = "application/problem+json";

struct head {
    const char *text;
    size_t len;
};

#define HEAD_TEXT(http, code, title)                                                               \
    "{\"type\":\"/problems/" code "\",\"title\":\"" title "\",\"status\":" #http                   \
    ",\"code\":\"" code "\",\"detail\":"
#define HEAD(name, http, code, title)                                                              \
    [name] = {HEAD_TEXT(http, code, title), sizeof HEAD_TEXT(http, code, title) - 1},

static const struct head heads[HF_STATUS_COUNT] = {HF_STATUS_MAP(HEAD)};

/* What to do about it, where that is worth a sentence. */
static const char *const details[HF_STATUS_COUNT] = {
    [HF_DUPLICATE_SEAT] = "Name each seat once.",
    [HF_UNAUTHORIZED] = "Send an access key of this server: Authorization: Bearer KEY.",
    [HF_FORBIDDEN] = "It takes a key of a higher scope.",
    [HF_NO_SUCH_EVENT] = "No event has this id.",
    [HF_NO_SUCH_SEAT] = "The event has no seats of these names.",
    [HF_NO_SUCH_HOLD] = "No hold has this id.",
    [HF_NO_SUCH_BOOKING] = "No booking has this id.",
    [HF_SEAT_TAKEN] = "These seats are held, booked or blocked; choose others.",
    [HF_SOLD_OUT] = "Fewer are left than were asked for; see available.",
    [HF_EVENT_CLOSED] = "The seller has closed the sale for now.",
    [HF_HOLD_EXPIRED] = "Its time ran out before this request; hold the seats again.",
    [HF_HOLD_RELEASED] = "It was given back; hold the seats again.",
    [HF_HOLD_CONFIRMED] = "The hold has become a booking.",
    [HF_RENEWAL_CAP] =
        "It would not last longer: ask for a longer ttl_ms, unless max_expires_at is near.",
    [HF_STALE_FENCE] = "Send the fence of the hold's latest answer.",
    [HF_KEY_MISMATCH] = "The key belongs to another method, path or body; use a new key.",
    [HF_TOO_MANY_HOLDS] = "Release a hold, buy, or wait until one expires.",
    [HF_INTERNAL] = "The request failed; the log has the reason under this request_id.",
    [HF_OVERLOADED] = "Nothing was done; repeat the request after Retry-After.",
    [HF_DRAINING] = "Nothing was done; repeat the request elsewhere or later.",
    [HF_LEDGER_UNAVAILABLE] = "Nothing was done; repeat the request after Retry-After.",
    [HF_OUTCOME_UNKNOWN] = "It may or may not have been done; look it up before repeating it.",
};

static bool is_retriable(enum hf_status status)
{
    return status == HF_OVERLOADED || status == HF_DRAINING || status == HF_LEDGER_UNAVAILABLE;
}

bool problem_write(struct buf *out, enum hf_status status, const char *detail,
                   const char request_id[REQUEST_ID_LEN])
{
    buf_put(out, heads[status].text, heads[status].len);
    if (detail) {
        /* It may end in the middle of a character that came from outside and was cut off. */
        buf_json(out, detail, utf8_valid_len(detail, strlen(detail)));
    } else {
        detail = details[status] ? details[status] : hf_status_title(status);
        buf_json(out, detail, strlen(detail));
    }
    buf_lit(out, ",\"request_id\":\"");
    buf_put(out, request_id, REQUEST_ID_LEN);
    buf_char(out, '"');
    if (is_retriable(status))
        buf_lit(out, ",\"retry_after_ms\":1000");
    return is_retriable(status);
}

void problem_open(struct request *r, enum hf_status status, const char *detail)
{
    r->out.len = 0;
    if (problem_write(&r->out, status, detail, r->id))
        r->answer.retry = true;
    r->answer.status = hf_status_http(status);
    r->answer.problem = status;
}

void problem_close(struct request *r)
{
    buf_char(&r->out, '}');
    answer_out(r, r->answer.status, type_problem);
}

void answer_problem(struct request *r, enum hf_status status, const char *detail)
{
    problem_open(r, status, detail);
    problem_close(r);
}
