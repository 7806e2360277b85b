/* GET /v1/events/{e}/plan: the venue's geometry, which never changes.  The document is rendered on
 * its first use, by the preparer, and kept compressed; for clients that take no gzip it is
 * unpacked, which costs a fraction of rendering it, and shared by all that read it at the same
 * time.  On HTTP threads but for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/render.h"
#include "api/routes.h"
#include "base/gzip.h"
#include "venue/plan_document.h"
#include "view/snapshot.h"
#include "view/view.h"

/* The document of an event depends on nothing but the event and how this version renders it. */
#define PLAN_ETAG "\"plan-1\""
#define PLAN_ETAG_PACKED "\"plan-1-gzip\""

static const char headers_immutable[] = "Cache-Control: public, max-age=31536000, immutable\r\n";

static void take_piece(void *context, struct buf *out)
{
    gzip_write(context, out);
    out->len = 0;
}

/* The compressed plan, rendered and kept if that has not been done. */
static struct snapshot *packed_plan(struct event *e)
{
    struct snapshot *s = event_plan(e, true);
    if (s)
        return s;
    s = snapshot_new(0);
    struct plan_sink sink = {.flush = take_piece, .context = gzip_open(&s->packed)};
    struct buf piece = {0};
    plan_document(e->def, event_id_text(e), &sink, &piece);
    gzip_finish(sink.context);
    buf_close(&piece);
    buf_trim(&s->packed);
    s->is_packed = true;
    event_keep_plan(e, snapshot_ref(s));
    return s;
}

/* The plain plan, which is listed as long as somebody reads it. */
static struct snapshot *plain_plan(struct event *e)
{
    struct snapshot *s = event_plan(e, false);
    if (s)
        return s;
    struct snapshot *packed = packed_plan(e);
    s = snapshot_new(0);
    hf_check(gzip_unpack(packed->packed.data, packed->packed.len, SIZE_MAX / 2, &s->text));
    buf_trim(&s->text);
    snapshot_unref(packed);
    versions_put(e->documents.plain_plans, s, 0);
    return s;
}

/* On the preparer's thread, the only one.  Of many that asked at once, the first renders for all.
 */
static void render_plan(void *context)
{
    struct call *c = context;
    c->plan.document = c->plan.is_packed ? packed_plan(c->plan.event) : plain_plan(c->plan.event);
}

static void set_headers(struct answer *a, bool packed)
{
    (void)snprintf(a->headers.etag, sizeof a->headers.etag, "%s",
                   packed ? PLAN_ETAG_PACKED : PLAN_ETAG);
    a->headers.more = headers_immutable;
    a->headers.varies = true;
}

/* Takes over the reference. */
static void answer_plan(struct request *r, struct snapshot *s, bool packed)
{
    set_headers(&r->answer, packed);
    answer_snapshot(r, s, packed);
}

static void plan_rendered(struct request *r)
{
    struct call *c = call_of(r);
    struct snapshot *s = c->plan.document;
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    c->plan.document = NULL;
    answer_plan(r, s, c->plan.is_packed);
}

void events_plan(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = call_event_named(c, r->segment.data, r->segment.len);
    if (!e)
        return;
    bool packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    const char *had = request_header(r, "If-None-Match");
    if (had && (text_etag_listed(had, PLAN_ETAG) || text_etag_listed(had, PLAN_ETAG_PACKED))) {
        set_headers(&r->answer, text_etag_listed(had, PLAN_ETAG_PACKED));
        r->answer.status = HTTP_NOT_MODIFIED;
        return;
    }
    struct snapshot *s = event_plan(e, packed);
    if (s) {
        answer_plan(r, s, packed);
        return;
    }
    c->plan.event = e;
    c->plan.is_packed = packed;
    c->command.kind = CMD_PREPARE;
    c->command.prepare.run = render_plan;
    c->command.prepare.context = c;
    call_submit(c, plan_rendered);
}
