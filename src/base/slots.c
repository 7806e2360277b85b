/* See slots.h. */
#include "base/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define SLOTS_MIN 256

/* To four times the slots that are not empty, without the others. */
void slots_grow(struct slots *s, const struct slots_kind *kind)
{
    struct slots old = *s;
    s->n_used = 0;
    for (size_t i = 0; i < old.n; i++)
        s->n_used += !kind->is_empty(slots_at(&old, kind, i));
    for (s->n = SLOTS_MIN; s->n < s->n_used * 4; s->n *= 2)
        ;
    s->v = hf_alloc(s->n * kind->size);
    for (size_t i = 0; i < old.n; i++) {
        const uint64_t *slot = slots_at(&old, kind, i);
        if (!kind->is_empty(slot))
            memcpy(slots_seek(s, kind, *slot), slot, kind->size);
    }
    free(old.v);
}

void slots_close(struct slots *s)
{
    free(s->v);
    *s = (struct slots){0};
}
