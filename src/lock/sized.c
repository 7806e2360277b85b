/* See sized.h. */
#include "lock/sized.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

enum hf_result sized_check(const char *name, const void *to, struct hf_fault *fault)
{
    size_t size = size_of(to);
    if (size >= sizeof size && size <= SIZED_MAX)
        return HF_DONE;
    return fault_set(fault, HF_BAD_REQUEST,
                     "struct %s has a size of %zu bytes: it was not initialised with its macro",
                     name, size);
}

enum hf_result sized_read(const char *name, const void *from, void *ret, size_t known,
                          struct hf_fault *fault)
{
    enum hf_result r = sized_check(name, from, fault);
    if (r != HF_DONE)
        return r;
    size_t size = size_of(from);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i])
            return fault_set(fault, HF_BAD_REQUEST,
                             "struct %s sets a member that libholdfast " HF_VERSION_TEXT
                             " does not know: the program needs a later one",
                             name);
    memset(ret, 0, known);
    memcpy(ret, from, size < known ? size : known);
    memcpy(ret, &known, sizeof known);
    return HF_DONE;
}

void sized_write(void *to, const void *from, size_t known)
{
    size_t size = size_of(to), filled = size < known ? size : known;
    memcpy(to, from, filled);
    memset((char *)to + filled, 0, size - filled);
    memcpy(to, &size, sizeof size);
}
