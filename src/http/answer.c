/* See answer.h. */
#include "http/answer.h"

#include <string.h>

#include "base/gzip.h"
#include "base/json_put.h"
#include "http/request.h"
#include "http/server_internal.h"

const char type_json[] = "application/json";

bool answer_has_body(const struct request *r)
{
    return !(r->method && strcmp(r->method, "HEAD") == 0) && r->answer.status != HTTP_NO_CONTENT &&
           r->answer.status != HTTP_NOT_MODIFIED;
}

void answer_out(struct request *r, int status, const char *type)
{
    r->answer.status = status;
    r->answer.type = type;
    r->answer.data = r->out.data;
    r->answer.len = r->out.len;
}

void answer_pack(struct request *r)
{
    struct buf packed = {0};
    r->answer.headers.varies = true;
    if (!gzip_accepted(request_header(r, "Accept-Encoding")))
        return;
    gzip_pack(&r->out, &packed);
    buf_close(&r->out);
    r->out = packed;
    r->answer.headers.gzipped = true;
    r->answer.data = r->out.data;
    r->answer.len = r->out.len;
}

void problem_open(struct request *r, const struct problem *problem, const char *detail)
{
    r->out.len = 0;
    problem_write(&r->out, problem, detail, r->id);
    r->answer.headers.retry_after_ms = problem->retry ? PROBLEM_RETRY_MS : 0;
    r->answer.status = problem->status;
}

void problem_close(struct request *r)
{
    buf_char(&r->out, '}');
    answer_out(r, r->answer.status, type_problem);
}

void answer_problem(struct request *r, const struct problem *problem, const char *detail)
{
    const struct http_app *app = r->server->config.app;
    if (app->refuse) {
        app->refuse(r, problem, detail);
        return;
    }
    problem_open(r, problem, detail);
    problem_close(r);
}

void answer_too_soon(struct request *r, const struct problem *problem, int64_t wait_us)
{
    problem_open(r, problem, NULL);
    r->answer.headers.retry_after_ms = wait_us > 0 ? (wait_us + 999) / 1000 : 1;
    json_put_int(&r->out, "retry_after_ms", r->answer.headers.retry_after_ms);
    problem_close(r);
}
