/* What operators and their tools ask: alive, ready, numbers, and the description of the API. */
#include <stdio.h>

#include "api/answer.h"
#include "api/routes.h"
#include "http/server.h"
#include "http/text.h"

/* openapi.S */
extern const char openapi_yaml[], openapi_yaml_end[];

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
        if (engine_gate_up(request_engine(r)))
            buf_lit(&r->out, "{\"status\":\"ready\"}");
        else
            buf_lit(&r->out, "{\"status\":\"degraded\",\"degraded\":[\"gate\"]}");
        answer_out(r, MHD_HTTP_OK, type_json);
    }
}

void ops_metrics(struct request *r)
{
    metrics_render(server_metrics(r->server), &r->out);
    answer_out(r, MHD_HTTP_OK, "text/plain; version=0.0.4");
}

/* FNV-1a of the document, 50 us, once; racing threads find the same. */
static uint64_t document_hash(void)
{
    static _Atomic uint64_t known;
    uint64_t hash = known;
    if (hash)
        return hash;
    hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = openapi_yaml; p < openapi_yaml_end; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    known = hash;
    return hash;
}

void ops_openapi(struct request *r)
{
    struct answer *a = &r->answer;
    const char *had =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    (void)snprintf(a->etag, sizeof a->etag, "\"%016llx\"", (unsigned long long)document_hash());
    if (had && text_etag_listed(had, a->etag)) {
        a->status = MHD_HTTP_NOT_MODIFIED;
        return;
    }
    a->status = MHD_HTTP_OK;
    a->type = "application/yaml";
    a->data = openapi_yaml;
    a->len = (size_t)(openapi_yaml_end - openapi_yaml);
}
