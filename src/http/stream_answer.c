/* See stream.h: the answer that a stream begins with. */
#include <string.h>

#include "base/gzip.h"
#include "http/server_internal.h"
#include "http/stream_internal.h"

/* Reads a seq in decimal. */
static bool read_seq(const char *text, int64_t *ret)
{
    int64_t n = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 18)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (*text - '0');
    }
    *ret = n;
    return true;
}

/* The header wins over the parameter, since a browser that reconnects sends it beside the URL it
 * began with. */
bool stream_read_place(struct request *r)
{
    const char *last = request_header(r, "Last-Event-ID"), *after = request_query(r, "after");
    r->answer.stream.after = AFTER_NOW;
    if (last) {
        if (!read_seq(last, &r->answer.stream.after))
            r->answer.stream.after = AFTER_UNKNOWN;
    } else if (after && !read_seq(after, &r->answer.stream.after)) {
        answer_problem(r, &problem_invalid_request, "after must be a seq");
        return false;
    }
    return true;
}

bool stream_counts_with(const struct request *r, struct address *ret)
{
    const struct access *access = server_access(r->server);
    return access->has_keys && !r->caller.has_key && access_address(r, ret) &&
           !networks_have(&access->trusted, ret);
}

/* Has the client's address as many streams as it may? */
static bool has_its_share(const struct request *r)
{
    struct address client;
    if (!stream_counts_with(r, &client))
        return false;
    if (!quota_take(r->server->quotas, &client, QUOTA_STREAMS))
        return true;
    quota_give(r->server->quotas, &client, QUOTA_STREAMS); /* until stream_open */
    return false;
}

static void refuse_stream(struct request *r, const struct stream_source *source, void *topic,
                          const struct problem *problem, const char *detail)
{
    if (source->unref)
        source->unref(topic);
    r->answer.close = true;
    answer_problem(r, problem, detail);
}

void answer_stream(struct request *r, const struct stream_source *source, void *topic)
{
    const struct server *s = r->server;
    struct answer *a = &r->answer;
    if (atomic_load(&s->n_streams) >= s->config.streams_max) {
        refuse_stream(r, source, topic, &problem_overloaded,
                      "There are as many streams as this server may have.");
        return;
    }
    if (has_its_share(r)) {
        refuse_stream(r, source, topic, &problem_too_many_streams, NULL);
        return;
    }
    a->status = HTTP_OK;
    a->type = "text/event-stream";
    a->stream.topic = topic;
    a->stream.source = source;
    a->headers.varies = true;
    a->headers.gzipped = gzip_accepted(request_header(r, "Accept-Encoding"));
}
