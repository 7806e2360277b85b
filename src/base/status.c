/* The table behind enum hf_status, failures put into words, and the two ways the program may end
 * itself: a broken assumption and no memory.  Everything else in the program stands on this file;
 * it calls nothing of ours.  No state, any thread. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_row {
    int http;
    const char *code, *title;
};

static const struct status_row rows[HF_STATUS_COUNT] = {
#define HF_STATUS_ROW(name, http, code, title) [name] = {http, code, title},
    HF_STATUS_MAP(HF_STATUS_ROW)
#undef HF_STATUS_ROW
};

static const struct status_row *row_of(enum hf_status status)
{
    hf_check((unsigned)status < HF_STATUS_COUNT);
    return &rows[status];
}

int hf_status_http(enum hf_status status) { return row_of(status)->http; }
const char *hf_status_code(enum hf_status status) { return row_of(status)->code; }
const char *hf_status_title(enum hf_status status) { return row_of(status)->title; }

enum hf_status hf_err_set(struct hf_err *err, enum hf_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        vsnprintf(err->msg, sizeof err->msg, fmt, args);
        va_end(args);
    }
    return code;
}

_Noreturn void hf_check_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this must hold and does not: %s\n", file, line, cond);
    abort();
}

static void *or_abort(void *memory, size_t size)
{
    if (!memory) {
        fprintf(stderr, "out of memory: %zu bytes wanted\n", size);
        abort();
    }
    return memory;
}

void *hf_alloc(size_t size) { return or_abort(calloc(1, size ? size : 1), size); }
void *hf_realloc(void *old, size_t size) { return or_abort(realloc(old, size ? size : 1), size); }

char *hf_strndup(const char *text, size_t len)
{
    char *copy = or_abort(malloc(len + 1), len + 1);
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
