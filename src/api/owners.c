/* POST /v1/owners/erase: forgets an owner in every hold, booking and stored answer.  The sales
 * stay. On HTTP threads; render_erased on a worker. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/render.h"
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

/* Sets a member to null, if it is there. */
static bool forget(json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value))
        return false;
    return json_object_set_new(object, name, json_null()) == 0;
}

static bool names(const json_t *object, const struct erasure *x)
{
    const json_t *owner = json_object_get(object, "owner");
    return json_is_string(owner) && json_string_length(owner) == x->owner_len &&
           memcmp(json_string_value(owner), x->owner, x->owner_len) == 0;
}

/* An answer that names the owner is rewritten even if its hold was erased before, by an erasure
 * that did not get as far as the answers. */
bool render_erased(const char *body, size_t len, const struct erasure *x, bool is_own,
                   struct buf *out)
{
    json_t *object = json_loadb(body, len, 0, NULL);
    bool changed = false;
    if (json_is_object(object) && (is_own || names(object, x))) {
        static const char *const labels[] = {"owner", "reference", "reason", "email"};
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
            changed |= forget(object, labels[i]);
        changed |= json_object_del(object, "metadata") == 0;
    }
    char *text = changed ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        return false;
    buf_put(out, text, strlen(text));
    free(text);
    return true;
}
