/* Problem documents as RFC 9457 has them.  Refusals are the most frequent answer while a sale is
 * on, so everything about a problem that does not depend on the request is one literal made by the
 * compiler, and writing a problem is a handful of copies.
 *
 * A problem is a constant.  Those of the transport are below; the application has its own, made by
 * the same macro. */
#ifndef HF_HTTP_PROBLEM_H
#define HF_HTTP_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct problem {
    int status;       /* HTTP status */
    bool retry;       /* nothing was done, and a later attempt may succeed: sends Retry-After */
    const char *text; /* the document up to the value of request_id, with the usual detail */
    size_t head_len;  /* the length of `text` up to the value of `detail` */
    size_t len;       /* the length of `text` */
};

#define PROBLEM_RETRY_MS 1000 /* when a later attempt may succeed, unless it is said otherwise */

#define PROBLEM_HEAD(http_status, code, title)                                                     \
    "{\"type\":\"/problems/" code "\",\"title\":\"" title "\",\"status\":" #http_status            \
    ",\"code\":\"" code "\",\"detail\":"
#define PROBLEM_NEXT ",\"request_id\":\""
#define PROBLEM_TEXT(http_status, code, title, usual_detail)                                       \
    PROBLEM_HEAD(http_status, code, title) "\"" usual_detail "\"" PROBLEM_NEXT

/* The initialiser of a struct problem.  None of the texts may need an escape in JSON. */
#define PROBLEM(http_status, code, title, usual_detail)                                            \
    {                                                                                              \
        .status = (http_status), .text = PROBLEM_TEXT(http_status, code, title, usual_detail),     \
        .head_len = sizeof PROBLEM_HEAD(http_status, code, title) - 1,                             \
        .len = sizeof PROBLEM_TEXT(http_status, code, title, usual_detail) - 1,                    \
    }
#define PROBLEM_RETRY(http_status, code, title, usual_detail)                                      \
    {                                                                                              \
        .status = (http_status), .retry = true,                                                    \
        .text = PROBLEM_TEXT(http_status, code, title, usual_detail),                              \
        .head_len = sizeof PROBLEM_HEAD(http_status, code, title) - 1,                             \
        .len = sizeof PROBLEM_TEXT(http_status, code, title, usual_detail) - 1,                    \
    }

extern const struct problem problem_invalid_request, problem_unauthorized, problem_forbidden,
    problem_tls_required, problem_cross_site, problem_misdirected, problem_not_found,
    problem_method_not_allowed, problem_request_timeout, problem_body_too_large,
    problem_too_many_requests, problem_too_many_wrong_keys, problem_expectation_failed,
    problem_headers_too_large, problem_internal, problem_not_implemented, problem_overloaded,
    problem_too_many_streams, problem_draining, problem_version_not_supported;

/* The usual detail of a problem; *ret_len is its length. */
static inline const char *problem_detail(const struct problem *problem, size_t *ret_len)
{
    *ret_len = problem->len - problem->head_len - (sizeof PROBLEM_NEXT - 1) - 2; /* its quotes */
    return problem->text + problem->head_len + 1;
}

extern const char type_problem[]; /* application/problem+json */

/* Appends all of the document but its last brace.  `detail` replaces the usual sentence unless it
 * is NULL; it is cut where it stops being UTF-8.  `request_id` has REQUEST_ID_LEN characters. */
void problem_write(struct buf *out, const struct problem *problem, const char *detail,
                   const char *request_id);

#endif
