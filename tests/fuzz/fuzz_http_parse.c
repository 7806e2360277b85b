/* The bytes of a connection: however they are cut, the parser makes the same of them, and a head
 * that it accepts reads the same line by line.  The input is what the client sends; where it is cut
 * follows from the input. */
#include "fuzz.h"

#include <strings.h>

#include "base/hash.h"
#include "base/random.h"
#include "support/transcript.h"

static void lies_in_the_head(const struct head *h, struct span s)
{
    hf_check(s.at + s.len <= (int)h->len);
}

static bool is_text(const char *data, struct span s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(data + s.at, text, s.len) == 0;
}

/* A line ends in CRLF and has no control character but HTAB.  Returns the beginning of the next. */
static const char *line_is_clean(const char *line, const char *end)
{
    for (; *line != '\r'; line++)
        hf_check(line < end && ((unsigned char)*line >= ' ' || *line == '\t') && *line != 0x7f);
    hf_check(line + 1 < end && line[1] == '\n');
    return line + 2;
}

static void request_line_is_as_sent(const struct head *h, const char *data, const char *line)
{
    struct buf again = {0};
    buf_put(&again, data + h->method.at, h->method.len);
    buf_char(&again, ' ');
    buf_put(&again, data + h->target.at, h->target.len);
    buf_lit(&again, " HTTP/1.");
    hf_check(memcmp(again.data, line, again.len) == 0 && line[again.len + 1] == '\r');
    hf_check((line[again.len] == '0') == (h->minor == 0));
    buf_close(&again);
    const char *target = data + h->target.at;
    hf_check(!memchr(target, '#', h->target.len));
    for (size_t i = 0; i < h->target.len; i++)
        hf_check(target[i] > ' ' && target[i] < 0x7f);
    hf_check(h->path.at + h->path.len == h->target.at + h->target.len &&
             h->path.at >= h->target.at);
}

static void host_is_plain(const struct head *h, const char *data)
{
    for (size_t i = 0; i < h->host.len; i++)
        hf_check(!strchr("/?@ \t\"\\", data[h->host.at + i]));
    hf_check(h->path.len == 0 || strchr("/?*", data[h->path.at]));
}

/* `line` is the name, a colon, white space, the value, white space. */
static void field_is_as_sent(const struct field *f, const char *data, const char *line)
{
    hf_check(data + f->name.at == line && f->name.len > 0);
    hf_check(!memchr(line, ' ', f->name.len) && !memchr(line, ':', f->name.len));
    const char *p = line + f->name.len;
    hf_check(*p++ == ':');
    while (*p == ' ' || *p == '\t')
        p++;
    hf_check(f->value.len == 0 || p == data + f->value.at);
    p += f->value.len;
    hf_check(f->value.len == 0 || (p[-1] != ' ' && p[-1] != '\t'));
    while (*p == ' ' || *p == '\t')
        p++;
    hf_check(*p == '\r');
}

static bool connection_lists(const struct head *h, const char *data, const char *option)
{
    bool found = false;
    for (size_t i = 0; i < h->n_fields; i++) {
        const struct field *f = &h->fields[i];
        if (!is_text(data, f->name, "connection"))
            continue;
        char *list = hf_strndup(data + f->value.at, f->value.len), *rest = list, *word;
        while ((word = strsep(&rest, ","))) {
            word += strspn(word, " \t");
            size_t len = strlen(option);
            found |= strncasecmp(word, option, len) == 0 &&
                     strspn(word + len, " \t") == strlen(word + len);
        }
        free(list);
    }
    return found;
}

static void framing_follows_from_the_fields(const struct head *h, const char *data)
{
    size_t n_hosts = 0, n_lengths = 0, n_encodings = 0;
    for (size_t i = 0; i < h->n_fields; i++) {
        const struct field *f = &h->fields[i];
        n_hosts += is_text(data, f->name, "host");
        if (is_text(data, f->name, "content-length")) {
            char *value = hf_strndup(data + f->value.at, f->value.len);
            hf_check(strspn(value, "0123456789") == f->value.len && f->value.len > 0);
            hf_check(strtoull(value, NULL, 10) == h->length);
            free(value);
            n_lengths++;
        }
        if (is_text(data, f->name, "transfer-encoding")) {
            hf_check(is_text(data, f->value, "chunked"));
            n_encodings++;
        }
    }
    hf_check(n_hosts == 1 || (n_hosts == 0 && h->minor == 0));
    hf_check(n_lengths == h->has_length && n_encodings == h->chunked);
    hf_check(n_lengths + n_encodings <= 1 && (n_encodings == 0 || h->minor > 0));
    bool stays = h->minor > 0 || connection_lists(h, data, "keep-alive");
    hf_check(h->persists == (stays && !connection_lists(h, data, "close")));
}

static void head_reads_the_same_line_by_line(const struct head *h, const char *data)
{
    const char *line = data, *end = data + h->len;
    lies_in_the_head(h, h->method);
    lies_in_the_head(h, h->target);
    lies_in_the_head(h, h->path);
    lies_in_the_head(h, h->host);
    while (line[0] == '\r')
        line = line_is_clean(line, end);
    request_line_is_as_sent(h, data, line);
    host_is_plain(h, data);
    line = line_is_clean(line, end);
    hf_check(h->n_fields <= FIELDS_MAX);
    for (size_t i = 0; i < h->n_fields; i++) {
        lies_in_the_head(h, h->fields[i].name);
        lies_in_the_head(h, h->fields[i].value);
        field_is_as_sent(&h->fields[i], data, line);
        line = line_is_clean(line, end);
    }
    hf_check(line[0] == '\r' && line_is_clean(line, end) == end);
    framing_follows_from_the_fields(h, data);
}

/* Feeds the input in pieces of 1 to `piece_max` bytes. */
static void read_in_pieces(struct transcript *t, const char *text, size_t size, size_t piece_max)
{
    struct random random;
    random_init_seeded(&random, hash_bytes(text, size) | 1);
    transcript_begin(t);
    t->on_head = head_reads_the_same_line_by_line;
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + (size_t)random_below(&random, piece_max);
        n = n < size - at ? n : size - at;
        transcript_feed(t, text + at, n);
    }
    transcript_end(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 5, 300};
    struct transcript whole, cut;
    transcript_begin(&whole);
    whole.on_head = head_reads_the_same_line_by_line;
    transcript_feed(&whole, (const char *)data, size);
    transcript_end(&whole);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        read_in_pieces(&cut, (const char *)data, size, pieces[i]);
        hf_check(strcmp(cut.out.data, whole.out.data) == 0);
        transcript_close(&cut);
    }
    transcript_close(&whole);
    return 0;
}
