/* For operators and their tools: GET /healthz, /readyz, /metrics and /openapi.yaml.  On HTTP
 * threads. */
#include <stdio.h>

#include "api/routes.h"
#include "base/hash.h"

/* openapi.S */
extern const char openapi_yaml[], openapi_yaml_end[];

void ops_health(struct request *r)
{
    buf_lit(&r->out, "{\"status\":\"ok\"}");
    answer_out(r, HTTP_OK, type_json);
}

void ops_ready(struct request *r)
{
    struct call *c = call_of(r);
    if (server_leaving(r->server)) {
        call_refuse(c, VERDICT_DRAINING, "The server is about to stop.");
        return;
    }
    if (!engine_ready(call_engine(c), NULL, 0)) {
        call_refuse(c, VERDICT_LEDGER_UNAVAILABLE, "The log has the reason.");
        return;
    }
    if (engine_gate_up(call_engine(c)))
        buf_lit(&r->out, "{\"status\":\"ready\"}");
    else
        buf_lit(&r->out, "{\"status\":\"degraded\",\"degraded\":[\"gate\"]}");
    answer_out(r, HTTP_OK, type_json);
}

void ops_metrics(struct request *r)
{
    const struct api *api = call_api(call_of(r));
    gauge_set(api->ready, !server_draining(r->server) && engine_ready(api->engine, NULL, 0));
    metrics_render(api->metrics, &r->out);
    answer_out(r, HTTP_OK, "text/plain; version=0.0.4");
}

/* Takes 50 us, once; threads that race find the same. */
static uint64_t document_hash(void)
{
    static _Atomic uint64_t known;
    uint64_t hash = known;
    if (!hash)
        known = hash = hash_bytes(openapi_yaml, (size_t)(openapi_yaml_end - openapi_yaml));
    return hash;
}

void ops_openapi(struct request *r)
{
    struct answer *a = &r->answer;
    const char *had = request_header(r, "If-None-Match");
    (void)snprintf(a->etag, sizeof a->etag, "\"%016llx\"", (unsigned long long)document_hash());
    if (had && text_etag_listed(had, a->etag)) {
        a->status = HTTP_NOT_MODIFIED;
        return;
    }
    a->status = HTTP_OK;
    a->type = "application/yaml";
    a->data = openapi_yaml;
    a->len = (size_t)(openapi_yaml_end - openapi_yaml);
}
