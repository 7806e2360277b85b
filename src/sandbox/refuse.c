/* See refuse.h. */
#include "sandbox/refuse.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

static void fill(struct api_error *ret, int status, const char *type, const char *code,
                 const char *param, const char *fmt, va_list args)
{
    *ret = (struct api_error){.status = status, .type = type, .code = code, .param = param};
    int len = vsnprintf(ret->message, sizeof ret->message, fmt, args);
    if (len < 0)
        len = 0;
    /* A message that was cut may end within a character. */
    size_t kept = (size_t)len < sizeof ret->message ? (size_t)len : sizeof ret->message - 1;
    ret->message[utf8_valid_len(ret->message, kept)] = '\0';
}

void refuse(struct api_error *ret, int status, const char *type, const char *code,
            const char *param, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(ret, status, type, code, param, fmt, args);
    va_end(args);
}

void refuse_parameter(struct api_error *ret, const char *code, const char *param, const char *fmt,
                      ...)
{
    va_list args;
    va_start(args, fmt);
    fill(ret, 400, "invalid_request_error", code, param, fmt, args);
    va_end(args);
    ret->is_validation = true;
}

void refuse_missing(struct api_error *ret, const char *what, const char *id, const char *param)
{
    refuse(ret, 404, "invalid_request_error", "resource_missing", param, "No such %s: '%.100s'",
           what, id);
}
