/* The words for enum hf_status, failures put into sentences, and the two ways in which the program
 * ends itself: a broken assumption and no memory.  Every other file stands on this one, and it
 * includes none of them.  Any thread may call it; hf_last_words is set before there are any. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_MAX 1024

const char *hf_status_name(enum hf_status status)
{
    static const char *const names[HF_STATUS_COUNT] = {
#define HF_STATUS_NAME(name, text) [HF_##name] = #name,
        HF_STATUS_MAP(HF_STATUS_NAME)
#undef HF_STATUS_NAME
    };
    hf_check((unsigned)status < HF_STATUS_COUNT);
    return names[status];
}

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

static void print_to_stderr(const char *text) { (void)fputs(text, stderr); }

void (*hf_last_words)(const char *text) = print_to_stderr;

_Noreturn void hf_check_failed(const char *cond, const char *file, int line)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s:%d: this must hold and does not: %.200s\n", file, line,
                   cond);
    hf_last_words(text);
    abort();
}

static void *or_abort(void *memory, size_t size)
{
    if (!memory) {
        char text[64];
        (void)snprintf(text, sizeof text, "out of memory: %zu bytes wanted\n", size);
        hf_last_words(text);
        abort();
    }
    return memory;
}

/* glibc's calloc goes past the blocks that the thread has freed lately (until 2.41), and that takes
 * hundreds of instructions for each small block. */
void *hf_alloc(size_t size)
{
    if (size > SMALL_MAX)
        return or_abort(calloc(1, size), size);
    void *memory = or_abort(malloc(size ? size : 1), size);
    return memset(memory, 0, size);
}

void *hf_realloc(void *old, size_t size) { return or_abort(realloc(old, size ? size : 1), size); }

char *hf_strndup(const char *text, size_t len)
{
    char *copy = or_abort(malloc(len + 1), len + 1);
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
