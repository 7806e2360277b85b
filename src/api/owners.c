/* POST /v1/owners/erase: forgets an owner in every hold, booking and stored answer.  The sales
 * stay.  On HTTP threads. */
#include "api/idempotency.h"
#include "api/routes.h"
#include "json/fields.h"

static bool read_erase(struct call *c, const char **ret, size_t *ret_len, struct hf_err *err)
{
    static const char *const known[] = {"owner", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_text(&f, "owner", REQUIRED, 1, HOLD_OWNER_CHARS_MAX, ret, ret_len);
}

void owners_erase(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    if (!idempotency_read(c))
        return;
    c->command.kind = CMD_OWNER_ERASE;
    if (!read_erase(c, &c->command.owner_erase.owner, &c->command.owner_erase.owner_len, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}
