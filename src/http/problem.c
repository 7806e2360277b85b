/* See problem.h.  The transport's own problems, and writing any.  No state; any thread. */
#include "http/problem.h"

#include <string.h>

#include "base/json_put.h"
#include "base/utf8.h"
#include "http/request.h"

const char type_problem[] = "application/problem+json";

const struct problem problem_invalid_request =
    PROBLEM(400, "invalid_request", "The request is malformed", "The request is malformed");
const struct problem problem_tls_required =
    PROBLEM(400, "tls_required", "This port speaks HTTPS",
            "A plain HTTP request was sent to an HTTPS port; the URL has to begin with https.");
const struct problem problem_unauthorized =
    PROBLEM(401, "unauthorized", "An access key is required",
            "Send an access key of this server: Authorization: Bearer KEY.");
const struct problem problem_forbidden = PROBLEM(
    403, "forbidden", "The access key does not allow this", "It takes a key of a higher scope.");
const struct problem problem_cross_site = PROBLEM(
    403, "cross_site", "Pages of other sites may not do this",
    "The server has no access keys, so it takes nothing from pages that are not its own; list "
    "their origin in --cors-origin.");
const struct problem problem_misdirected =
    PROBLEM(421, "misdirected_request", "The server does not go by this name",
            "Host must be a name of this server: without access keys localhost or a loopback "
            "address, otherwise one of --host.");
const struct problem problem_not_found =
    PROBLEM(404, "not_found", "There is nothing at this path", "There is nothing at this path");
const struct problem problem_method_not_allowed =
    PROBLEM(405, "method_not_allowed", "This path does not take that method",
            "This path does not take that method");
const struct problem problem_request_timeout =
    PROBLEM(408, "request_timeout", "The request did not arrive in time",
            "Nothing was done; send the whole request without long pauses.");
const struct problem problem_body_too_large =
    PROBLEM(413, "body_too_large", "The body is too large", "The body is too large");
const struct problem problem_expectation_failed = PROBLEM(
    417, "expectation_failed", "The expectation cannot be met", "Expect must be 100-continue.");
const struct problem problem_too_many_requests =
    PROBLEM(429, "too_many_requests", "This address asks for this too often",
            "Nothing was done; repeat the request after Retry-After.");
const struct problem problem_too_many_wrong_keys =
    PROBLEM(429, "too_many_wrong_keys", "Too many wrong access keys came from this address",
            "No key that was not used from here before is looked at; try again after "
            "Retry-After.");
const struct problem problem_headers_too_large =
    PROBLEM(431, "headers_too_large", "The headers are too large",
            "Request line and headers must have at most 16384 bytes and 100 fields.");
const struct problem problem_internal =
    PROBLEM(500, "internal", "Something is wrong on our side",
            "The request failed; the log has the reason under this request_id.");
const struct problem problem_not_implemented =
    PROBLEM(501, "not_implemented", "The server does not know this encoding",
            "Transfer-Encoding must be chunked.");
const struct problem problem_too_many_streams =
    PROBLEM_RETRY(429, "too_many_streams", "This address has as many streams as it may",
                  "Close a stream, or ask with an access key.");
const struct problem problem_overloaded =
    PROBLEM_RETRY(503, "overloaded", "The server is busy; try again shortly",
                  "Nothing was done; repeat the request after Retry-After.");
const struct problem problem_draining =
    PROBLEM_RETRY(503, "draining", "The server is shutting down",
                  "Nothing was done; repeat the request elsewhere or later.");
const struct problem problem_version_not_supported =
    PROBLEM(505, "version_not_supported", "The server does not speak this version of HTTP",
            "The version must be HTTP/1.1 or HTTP/1.0.");

void problem_write(struct buf *out, const struct problem *problem, const char *detail,
                   const char *request_id)
{
    if (detail) {
        buf_put(out, problem->text, problem->head_len);
        /* It may end in the middle of a character that came from outside and was cut off. */
        buf_json(out, detail, utf8_valid_len(detail, strlen(detail)));
        buf_lit(out, PROBLEM_NEXT);
    } else {
        buf_put(out, problem->text, problem->len);
    }
    buf_put(out, request_id, REQUEST_ID_LEN);
    buf_char(out, '"');
    if (problem->retry) {
        json_put_int(out, "retry_after_ms", PROBLEM_RETRY_MS);
    }
}
