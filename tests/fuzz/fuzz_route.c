/* A request line: percent-decoding and the table of routes.  The first line of the input is the
 * method, the rest the path as it came over the wire. */
#include "fuzz.h"

#include "http/routes.h"
#include "http/text.h"

/* What an escape stands for, read from the left once: the same as the server's, said differently.
 */
static size_t unescape_slowly(const char *in, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    while (*in) {
        const char *high = *in == '%' && in[1] ? strchr(digits, in[1] | 0x20) : NULL;
        const char *low = high && in[2] ? strchr(digits, in[2] | 0x20) : NULL;
        bool letters = low && in[1] >= '0' && in[2] >= '0'; /* 0x10 | 0x20 is a digit too */
        int value = letters ? (int)((high - digits) * 16 + (low - digits)) : 0;
        if (value == '/' || value == '%') /* left for the reader of names */
            value = 0;
        out[n++] = value ? (char)value : *in;
        in += value ? 3 : 1;
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

/* The route's pattern with the segment in place of `*` must be the path again. */
static void segment_fills_the_pattern(const struct request *r)
{
    const char *pattern = r->route->path, *star = strchr(pattern, '*');
    if (!star) {
        hf_check(strcmp(pattern, r->path) == 0);
        return;
    }
    size_t before = (size_t)(star - pattern), len = strlen(r->path);
    hf_check(r->segment == r->path + before && r->segment_len > 0);
    hf_check(!memchr(r->segment, '/', r->segment_len));
    hf_check(strncmp(pattern, r->path, before) == 0 && before + r->segment_len <= len);
    if (!strchr(star + 1, '*'))
        hf_check(strcmp(star + 1, r->segment + r->segment_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *newline = strchr(text, '\n');
    if (newline) {
        *newline = '\0';
        path_is_decoded(newline + 1);
    }
    if (newline && strcmp(text, "OPTIONS") != 0) { /* which asks the server for its settings */
        struct request r = {.method = text, .path = newline + 1};
        route_find(&r);
        hf_check(r.step && r.body_max >= BODY_MAX && r.body_max <= BODY_EVENT_MAX);
        if (r.route)
            segment_fills_the_pattern(&r);
    }
    free(text);
    return 0;
}
