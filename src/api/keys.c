/* GET /v1/idempotency/{key}: did a request with this Idempotency-Key succeed?  The key is looked up
 * in the caller's own scope.  On HTTP threads. */
#include "api/idempotency.h"
#include "api/routes.h"

static void key_read(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict == VERDICT_KEY_UNUSED) {
        answer_problem(r, &problem_not_found, "Nothing is stored under this key.");
        return;
    }
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct buf *answer = &c->command.key.answer;
    if (answer->len)
        buf_put(&r->out, answer->data, answer->len);
    else
        buf_lit(&r->out, "null"); /* the answer had no body */
    answer_out(r, HTTP_OK, type_json);
    r->answer.headers.replayed = true;
}

void keys_get(struct request *r)
{
    struct call *c = call_of(r);
    const struct buf *name = request_name(r, r->segment.data, r->segment.len);
    r->headers.key = (struct text){.data = name->data, .len = name->len};
    r->headers.n_keys = 1;
    if (!idempotency_read(c))
        return;
    c->command.kind = CMD_KEY_GET;
    call_submit(c, key_read);
}
