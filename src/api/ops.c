/* For operators and their tools: GET /healthz, /readyz, /metrics and /openapi.yaml.  On HTTP
 * threads. */
#include <stdio.h>
#include <string.h>

#include "api/routes.h"
#include "base/hash.h"
#include "cell/cell.h"

/* openapi.S */
extern const char openapi_yaml[], openapi_yaml_end[];

void ops_health(struct request *r)
{
    buf_lit(&r->out, "{\"status\":\"ok\"}");
    answer_out(r, HTTP_OK, type_json);
}

/* Names what does not answer. */
static void put_readiness(const char *const *degraded, size_t n, struct buf *out)
{
    if (n == 0) {
        buf_lit(out, "{\"status\":\"ready\"}");
        return;
    }
    buf_lit(out, "{\"status\":\"degraded\",\"degraded\":[");
    for (size_t i = 0; i < n; i++)
        json_put_text(out, NULL, degraded[i]);
    buf_lit(out, "]}");
}

/* With ?for=reads the question is whether maps and streams can be served, be they stale. */
void ops_ready(struct request *r)
{
    struct call *c = call_of(r);
    struct engine *e = call_engine(c);
    const char *purpose = request_query(r, "for");
    if (purpose && strcmp(purpose, "reads") != 0) {
        call_invalid(c, "for must be reads, if it is given");
        return;
    }
    if (server_leaving(r->server)) {
        call_refuse(c, VERDICT_DRAINING, "The server is about to stop.");
        return;
    }
    bool ledger_up = engine_ready(e, NULL, 0);
    if (!(purpose ? engine_ready_for_reads(e) : ledger_up)) {
        call_refuse(c, VERDICT_STORE_UNAVAILABLE, "The log has the reason.");
        return;
    }
    const char *degraded[3];
    size_t n = 0;
    if (!ledger_up)
        degraded[n++] = "ledger";
    if (!engine_gate_up(e))
        degraded[n++] = "gate";
    if (call_api(c)->cell && !cell_ready(call_api(c)->cell, NULL, 0))
        degraded[n++] = "journal";
    put_readiness(degraded, n, &r->out);
    answer_out(r, HTTP_OK, type_json);
}

void ops_metrics(struct request *r)
{
    const struct api *api = call_api(call_of(r));
    gauge_set(api->ready, !server_leaving(r->server) && engine_ready(api->engine, NULL, 0));
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
    (void)snprintf(a->headers.etag, sizeof a->headers.etag, "\"%016llx\"",
                   (unsigned long long)document_hash());
    if (had && text_etag_listed(had, a->headers.etag)) {
        a->status = HTTP_NOT_MODIFIED;
        return;
    }
    a->status = HTTP_OK;
    a->type = "application/yaml";
    a->data = openapi_yaml;
    a->len = (size_t)(openapi_yaml_end - openapi_yaml);
}
