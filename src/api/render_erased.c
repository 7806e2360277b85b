/* A stored answer from which an owner is erased; see render.h.  On workers. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/render.h"

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
