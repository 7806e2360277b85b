/* What operators and their tools ask: alive, ready, numbers. */
#include "http/answer.h"
#include "http/routes.h"
#include "http/server.h"

void ops_health(struct request *r)
{
    buf_lit(&r->out, "{\"status\":\"ok\"}");
    answer_out(r, MHD_HTTP_OK, type_json);
}

void ops_ready(struct request *r)
{
    if (server_draining(r->server)) {
        answer_problem(r, HF_DRAINING, "No new requests are taken.");
    } else if (!engine_ready(request_engine(r), NULL, 0)) {
        answer_problem(r, HF_LEDGER_UNAVAILABLE, "The log has the reason.");
    } else {
        buf_lit(&r->out, "{\"status\":\"ready\"}");
        answer_out(r, MHD_HTTP_OK, type_json);
    }
}

void ops_metrics(struct request *r)
{
    metrics_render(server_metrics(r->server), &r->out);
    answer_out(r, MHD_HTTP_OK, "text/plain; version=0.0.4");
}
