/* See fault.h. */
#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>

enum hf_result fault_set(struct hf_fault *fault, enum hf_result result, const char *fmt, ...)
{
    if (fault) {
        fault->result = result;
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(fault->msg, sizeof fault->msg, fmt, args);
        va_end(args);
    }
    return result;
}
