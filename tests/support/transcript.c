/* See transcript.h.  Does what a connection does with the parser, without a socket. */
#include "support/transcript.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void transcript_begin(struct transcript *t)
{
    memset(t, 0, sizeof *t);
    memset(t->head.fields, 0xff, sizeof t->head.fields); /* whoever reads one unwritten is caught */
    head_begin(&t->head);
}

static void put_span(struct buf *out, const char *data, struct span s)
{
    buf_put(out, data + s.at, s.len);
}

static bool same(const char *data, struct span a, struct span b)
{
    return a.len == b.len && memcmp(data + a.at, data + b.at, a.len) == 0;
}

static struct span first_host(const struct head *h, const char *data)
{
    for (size_t i = 0; i < h->n_fields; i++)
        if (h->fields[i].name.len == 4 && strncasecmp(data + h->fields[i].name.at, "host", 4) == 0)
            return h->fields[i].value;
    return (struct span){0};
}

static void put_head(struct buf *out, const struct head *h, const char *data)
{
    put_span(out, data, h->method);
    buf_char(out, ' ');
    put_span(out, data, h->target);
    buf_printf(out, " 1.%u %s%s\n", h->minor, h->persists ? "persists" : "closes",
               h->expects ? " expects" : "");
    if (!same(data, h->path, h->target)) {
        buf_lit(out, "path ");
        put_span(out, data, h->path);
        buf_char(out, '\n');
    }
    if (!same(data, h->host, first_host(h, data))) {
        buf_lit(out, "host ");
        put_span(out, data, h->host);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < h->n_fields; i++) {
        put_span(out, data, h->fields[i].name);
        buf_lit(out, ": ");
        put_span(out, data, h->fields[i].value);
        buf_char(out, '\n');
    }
}

static void put_body(struct buf *out, const struct buf *content)
{
    if (content->len == 0)
        return;
    buf_lit(out, "body ");
    for (size_t i = 0; i < content->len; i++) {
        unsigned char c = (unsigned char)content->data[i];
        if (c >= ' ' && c < 0x7f && c != '\\')
            buf_char(out, (char)c);
        else
            buf_printf(out, "\\x%02x", c);
    }
    buf_char(out, '\n');
}

static void put_refusal(struct transcript *t, const struct refusal *refusal)
{
    const struct problem *p = refusal->problem;
    hf_check(p && p->status >= 400);
    buf_printf(&t->out, "refused %d", p->status);
    if (refusal->detail)
        buf_printf(&t->out, " %s", refusal->detail);
    buf_char(&t->out, '\n');
    t->ended = true;
}

static void end_request(struct transcript *t)
{
    put_body(&t->out, &t->content);
    buf_lit(&t->out, "end\n");
    t->ended = !t->head.persists;
    t->has_body = false;
    t->content.len = 0;
    t->begun = t->dropped;
    head_begin(&t->head);
}

static void drop(struct transcript *t, size_t len)
{
    hf_check(len > 0 && len <= t->in.len);
    t->in.len -= len;
    memmove(t->in.data, t->in.data + len, t->in.len);
    t->dropped += len;
}

/* Each takes what it can of `data`, which is all of t->in, and returns false if it needs more. */
static bool take_head(struct transcript *t, const char *data)
{
    struct head *h = &t->head;
    enum parse parse = head_parse(h, data, t->in.len);
    if (parse == PARSE_REFUSED)
        put_refusal(t, &h->refusal);
    if (parse == PARSE_MORE)
        hf_check(h->searched == t->in.len); /* no byte is searched for an LF twice */
    if (parse != PARSE_DONE)
        return false;
    hf_check(h->len > 0 && h->len <= t->in.len && h->len <= HEAD_LEN_MAX);
    if (t->on_head)
        t->on_head(h, data);
    put_head(&t->out, h, data);
    drop(t, h->len);
    t->has_body = body_begin(&t->body, h);
    if (!t->has_body)
        end_request(t);
    return true;
}

static bool take_body(struct transcript *t, const char *data)
{
    size_t used = 0;
    struct text part = {0};
    enum parse parse = body_parse(&t->body, data, t->in.len, &used, &part);
    if (parse == PARSE_REFUSED)
        put_refusal(t, &t->body.refusal);
    if (parse == PARSE_REFUSED)
        return false;
    hf_check(used > 0 && used <= t->in.len);
    hf_check(part.data >= data && part.data + part.len <= data + used);
    buf_put(&t->content, part.data, part.len);
    drop(t, used);
    if (parse == PARSE_DONE)
        end_request(t);
    return true;
}

/* Returns a copy of t->in that ends where a block of memory ends. */
static const char *copy_of(struct transcript *t)
{
    if (t->block_size < t->in.len) {
        free(t->block);
        t->block_size = 2 * t->in.len;
        t->block = hf_alloc(t->block_size);
    }
    char *copy = t->block + t->block_size - t->in.len;
    memcpy(copy, t->in.data, t->in.len);
    return copy;
}

void transcript_feed(struct transcript *t, const char *data, size_t len)
{
    buf_put(&t->in, data, len);
    bool again = true;
    while (again && !t->ended && t->in.len > 0) {
        const char *copy = copy_of(t);
        again = t->has_body ? take_body(t, copy) : take_head(t, copy);
    }
}

void transcript_end(struct transcript *t)
{
    if (!t->ended && (t->has_body || t->in.len > 0))
        buf_lit(&t->out, "incomplete\n");
    buf_char(&t->out, '\0');
    t->out.len--;
}

void transcript_close(struct transcript *t)
{
    buf_close(&t->out);
    buf_close(&t->in);
    buf_close(&t->content);
    free(t->block);
}
