/* See stream.h: the answer that a stream begins with. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/gzip.h"
#include "http/conn.h"
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
    r->answer.after = AFTER_NOW;
    if (last) {
        if (!read_seq(last, &r->answer.after))
            r->answer.after = AFTER_UNKNOWN;
    } else if (after && !read_seq(after, &r->answer.after)) {
        answer_problem(r, &problem_invalid_request, "after must be a seq");
        return false;
    }
    return true;
}

/* The length of the name in a Host header, without the port. */
static size_t host_len(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

/* A page of the main port that reads a stream of the streams' own port comes from another origin:
 * is it SCHEME://NAME:PORT, where NAME is the server's name in this request and PORT the main one?
 */
bool stream_is_for_own_page(const struct request *r)
{
    const char *origin = r->origin.data;
    if (!origin || !r->conn->streams_only) /* of nearly every request */
        return false;
    const char *host = request_header(r, "Host");
    unsigned page_port = r->server->config.page_port, usual = r->server->config.tls ? 443 : 80;
    char scheme[16], port[16];
    int scheme_len = snprintf(scheme, sizeof scheme, "%s://", server_scheme(r->server));
    if (!host || strncmp(origin, scheme, (size_t)scheme_len) != 0)
        return false;
    origin += scheme_len;
    size_t len = host_len(host);
    (void)snprintf(port, sizeof port, ":%u", page_port);
    return len > 0 && strncasecmp(origin, host, len) == 0 &&
           (strcmp(origin + len, port) == 0 || (page_port == usual && origin[len] == '\0'));
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
    a->topic = topic;
    a->source = source;
    a->varies = true;
    a->gzipped = gzip_accepted(request_header(r, "Accept-Encoding"));
}
