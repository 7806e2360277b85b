/* See sized.h. */
#include "lock/sized.h"

#include <string.h>

/* The sizes of version 0.1.0, which never change.  A struct that has grown since then is a
 * GROWN_TYPE; `first_new` is the first member that version 0.1.0 does not have. */
#define SIZED_TYPE(variable, type, min_size)                                                       \
    _Static_assert(sizeof(type) == (min_size), #type " differs from version 0.1.0");               \
    DEFINE_TYPE(variable, type, min_size)
#define GROWN_TYPE(variable, type, first_new, min_size)                                            \
    _Static_assert(offsetof(type, first_new) == (min_size), #type " differs from 0.1.0");          \
    DEFINE_TYPE(variable, type, min_size)
#define DEFINE_TYPE(variable, type, min_size)                                                      \
    _Static_assert(sizeof(type) <= SIZED_MAX, #type " is too large");                              \
    const struct sized_type variable = {                                                           \
        .name = &(#type)[sizeof "struct " - 1], .min = (min_size), .known = sizeof(type)}

SIZED_TYPE(sized_options, struct hf_options, 16);
GROWN_TYPE(sized_lock_options, struct hf_lock_options, value, 120);
GROWN_TYPE(sized_grant, struct hf_grant, slot, 64);
GROWN_TYPE(sized_lock_state, struct hf_lock_state, value, 48);
SIZED_TYPE(sized_election, struct hf_election, 48);
GROWN_TYPE(sized_stats, struct hf_stats, cache_hits, 288);

/* The alignment of every struct above.  Sizes are multiples of it. */
#define SIZED_ALIGNMENT 8
_Static_assert(_Alignof(struct hf_options) == SIZED_ALIGNMENT, "hf_options is aligned otherwise");

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

enum hf_result sized_check(const struct sized_type *type, const void *sized, struct hf_fault *fault)
{
    if (!sized)
        return fault_set(fault, HF_BAD_REQUEST, "struct %s is NULL", type->name);
    size_t size = size_of(sized);
    if (size >= type->min && size <= SIZED_MAX && size % SIZED_ALIGNMENT == 0)
        return HF_DONE;
    return fault_set(fault, HF_BAD_REQUEST,
                     "struct %s has a size of %zu bytes: it was not initialised with its macro",
                     type->name, size);
}

enum hf_result sized_read(const struct sized_type *type, const void *from, void *ret,
                          struct hf_fault *fault)
{
    enum hf_result r = sized_check(type, from, fault);
    if (r != HF_DONE)
        return r;
    size_t size = size_of(from), known = type->known;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i])
            return fault_set(fault, HF_BAD_REQUEST,
                             "struct %s sets a member that libholdfast " HF_VERSION_TEXT
                             " does not know: the program needs a later one",
                             type->name);
    memset(ret, 0, known);
    memcpy(ret, from, size < known ? size : known);
    memcpy(ret, &known, sizeof known);
    return HF_DONE;
}

void sized_write(const struct sized_type *type, void *to, const void *from)
{
    size_t size = size_of(to);
    memcpy(to, from, size < type->known ? size : type->known);
    memcpy(to, &size, sizeof size);
}
