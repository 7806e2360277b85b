/* A request line: percent-decoding and the table of routes.  The first line of the input is the
 * method, the rest the path as it came over the wire. */
#include "fuzz.h"

#include "api/routes.h"

/* Decodes escapes from the left in one pass: the same rule as the server's, written differently. */
static size_t unescape_slowly(const char *in, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    while (*in) {
        const char *high = *in == '%' && in[1] ? strchr(digits, in[1] | 0x20) : NULL;
        const char *low = high && in[2] ? strchr(digits, in[2] | 0x20) : NULL;
        bool letters = low && in[1] >= '0' && in[2] >= '0'; /* 0x10 | 0x20 is a digit too */
        int value = letters ? (int)((high - digits) * 16 + (low - digits)) : 0;
        bool kept = value == 0 || value == '/' || value == '%';
        out[n++] = kept ? *in : (char)value;
        in += kept ? 1 : 3;
    }
    out[n] = '\0';
    return n;
}

static void path_is_decoded(char *path)
{
    size_t len = strlen(path);
    char *expected = hf_alloc(len + 1);
    size_t expected_len = unescape_slowly(path, expected);
    size_t decoded_len = text_unescape(path);
    hf_check(decoded_len == expected_len && strcmp(path, expected) == 0);
    size_t name_len = text_unescape_name(path, decoded_len, expected);
    hf_check(name_len <= decoded_len && (decoded_len - name_len) % 2 == 0);
    free(expected);
}

/* The route's pattern with the segments in place of each `*` must be the path again. */
static void segments_fill_the_pattern(const struct request *r)
{
    const struct text segments[] = {r->segment, r->segment2, r->segment3};
    struct buf path = {0};
    size_t n = 0;
    for (const char *p = r->route->path; *p; p++) {
        if (*p != '*') {
            buf_char(&path, *p);
            continue;
        }
        hf_check(n < 3 && segments[n].len > 0 && !memchr(segments[n].data, '/', segments[n].len));
        buf_put(&path, segments[n].data, segments[n].len);
        n++;
    }
    hf_check(path.data && path.len == strlen(r->path) && memcmp(path.data, r->path, path.len) == 0);
    buf_close(&path);
}

/* A name may contain a slash or a percent sign, and is decoded to what the client meant. */
static void name_is_read_back(const char *name, size_t len)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buf escaped = {0};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        const char text[] = {'%', digits[c >> 4], digits[c & 15]};
        buf_put(&escaped, text, 3);
    }
    buf_char(&escaped, '\0');
    size_t got_len = text_unescape(escaped.data);
    struct request r = {0};
    const struct buf *got = request_name(&r, escaped.data, got_len);
    hf_check(!memchr(escaped.data, '/', got_len));
    hf_check(got->len == len && (len == 0 || memcmp(got->data, name, len) == 0));
    buf_close(&r.name);
    buf_close(&escaped);
}

static void route_is_found(const char *method, const char *path, bool streams_only)
{
    struct request r = {.method = method, .path = path};
    route_find(&r, api_routes, streams_only);
    hf_check(r.step && r.upload.max >= BODY_MAX && r.upload.max <= BODY_PLAN_MAX);
    hf_check(!r.route || r.route->streams || !streams_only);
    if (r.route)
        segments_fill_the_pattern(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *newline = strchr(text, '\n');
    if (newline) {
        *newline = '\0';
        name_is_read_back(newline + 1, strlen(newline + 1));
        path_is_decoded(newline + 1);
    }
    if (newline && strcmp(text, "OPTIONS") != 0) { /* which looks at the server's CORS settings */
        route_is_found(text, newline + 1, false);
        route_is_found(text, newline + 1, true);
    }
    free(text);
    return 0;
}
