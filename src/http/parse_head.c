/* See parse.h.  The head of a request: lines are found by their LF, and each is taken apart once.
 * No state of its own; any thread.
 *
 * A line is read only after its CRLF was found.  The CR is of no class of characters, so every scan
 * ends there at the latest and compares no positions. */
#include "http/parse.h"

#include <string.h>
#include <strings.h>

#include "http/chars.h"

void head_begin(struct head *h) { memset(h, 0, offsetof(struct head, fields)); }

static bool refuse(struct head *h, const struct problem *problem, const char *detail)
{
    h->refusal = (struct refusal){.problem = problem, .detail = detail};
    return false;
}

static bool malformed(struct head *h, const char *detail)
{
    return refuse(h, &problem_invalid_request, detail);
}

static struct span span(const char *data, const char *begin, const char *end)
{
    return (struct span){.at = (uint16_t)(begin - data), .len = (uint16_t)(end - begin)};
}

static bool is(const char *begin, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - begin) == len && strncasecmp(begin, word, len) == 0;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Returns the end of the host[:port] at `text`, or `text` if there is none. */
static const char *host_end(const char *text)
{
    const char *end;
    if (*text == '[') {
        end = chars_skip(text + 1, CHAR_IPV6);
        if (end == text + 1 || *end != ']')
            return text;
        end++;
    } else {
        end = chars_skip(text, CHAR_HOST);
    }
    if (end == text || *end != ':')
        return end;
    const char *port = end + 1;
    end = chars_skip(port, CHAR_DIGIT);
    return end - port <= 5 ? end : text;
}

/* ---- request line --------------------------------------------------------------------------- */

static bool method_is(const struct head *h, const char *data, const char *method)
{
    size_t len = strlen(method);
    return h->method.len == len && memcmp(data + h->method.at, method, len) == 0;
}

/* RFC 9112, 3.2: CONNECT takes a host and a port and is for proxies; only OPTIONS takes `*`. */
static bool read_target(struct head *h, const char *data, const char *begin, const char *end)
{
    h->target = h->path = span(data, begin, end);
    bool is_connect = method_is(h, data, "CONNECT");
    if (*begin == '/' && !is_connect)
        return true;
    if (*begin == '*' && end - begin == 1 && method_is(h, data, "OPTIONS"))
        return true;
    size_t scheme_len = strncasecmp(begin, "http://", 7) == 0    ? 7
                        : strncasecmp(begin, "https://", 8) == 0 ? 8
                                                                 : 0;
    if (scheme_len == 0 || is_connect)
        return malformed(h, "The target of a request must be a path or a URL of this server.");
    const char *host = begin + scheme_len, *path = host_end(host);
    if (path == host || (path != end && *path != '/' && *path != '?'))
        return malformed(h, "The URL in the request line has no valid host.");
    h->host = span(data, host, path);
    h->path = span(data, path, end);
    return true;
}

/* `text` is what follows the target.  RFC 9110, 2.5: a later minor version is read as the highest
 * that is known. */
static bool read_version(struct head *h, const char *text, const char *end)
{
    if (end - text >= 6 && memcmp(text, "HTTP/", 5) == 0 && char_is(text[5], CHAR_DIGIT)) {
        if (text[5] != '1')
            return refuse(h, &problem_version_not_supported, NULL);
        if (end - text == 8 && text[6] == '.' && char_is(text[7], CHAR_DIGIT)) {
            h->minor = text[7] != '0';
            return true;
        }
    }
    return malformed(h, "The request line must end in HTTP/1.1 or HTTP/1.0.");
}

static const char bad_method[] = "The request line must begin with a method and a space.";

static bool read_request_line(struct head *h, const char *data, const char *line, const char *end)
{
    const char *method_end = chars_skip(line, CHAR_TOKEN);
    if (method_end == line || *method_end != ' ')
        return malformed(h, bad_method);
    const char *target = method_end + 1, *target_end = chars_skip(target, CHAR_TARGET);
    if (target_end == target || (target_end != end && *target_end != ' '))
        return malformed(h, "The target of a request must be printable ASCII, without # and "
                            "between single spaces.");
    h->method = span(data, line, method_end);
    h->has_request_line = true;
    return read_version(h, target_end == end ? end : target_end + 1, end) &&
           read_target(h, data, target, target_end);
}

/* ---- fields --------------------------------------------------------------------------------- */

static bool take_host(struct head *h, const char *data, const char *value, const char *end)
{
    if (h->has_host)
        return malformed(h, "There must be only one Host.");
    h->has_host = true;
    /* It may be empty (RFC 9112, 3.2). */
    if (host_end(value) != end)
        return malformed(h, "Host must be a host, or a host and a port.");
    if (h->host.len == 0)
        h->host = span(data, value, end);
    return true;
}

static bool take_content_length(struct head *h, const char *value, const char *end)
{
    bool valid = !h->has_length && value != end;
    uint64_t length = 0;
    for (; valid && value != end; value++)
        valid = char_is(*value, CHAR_DIGIT) && !__builtin_mul_overflow(length, 10, &length) &&
                !__builtin_add_overflow(length, (uint64_t)(*value - '0'), &length);
    h->has_length = true;
    h->length = length;
    return valid || malformed(h, "There must be only one Content-Length, a decimal number.");
}

/* RFC 9112, 6.1 and 6.3: without chunks at the end, nobody knows where the body ends. */
static bool take_transfer_encoding(struct head *h, const char *value, const char *end)
{
    if (h->minor == 0)
        return malformed(h, "HTTP/1.0 has no Transfer-Encoding.");
    if (h->chunked)
        return malformed(h, "There must be only one Transfer-Encoding.");
    h->chunked = true;
    if (is(value, end, "chunked"))
        return true;
    const char *comma = memrchr(value, ',', (size_t)(end - value)), *last = comma ? comma + 1 : end;
    while (last < end && is_blank(*last))
        last++;
    return is(last, end, "chunked")
               ? refuse(h, &problem_not_implemented, NULL)
               : malformed(h, "The last Transfer-Encoding of a request must be chunked.");
}

static void take_connection(struct head *h, const char *value, const char *end)
{
    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        const char *option_end = comma ? comma : end;
        const char *next = comma ? comma + 1 : end;
        while (is_blank(*value))
            value++;
        while (option_end > value && is_blank(option_end[-1]))
            option_end--;
        h->says_close |= is(value, option_end, "close");
        h->says_keep_alive |= is(value, option_end, "keep-alive");
        value = next;
    }
}

static bool take_expect(struct head *h, const char *value, const char *end)
{
    if (h->minor == 0) /* RFC 9110, 10.1.1: ignored */
        return true;
    h->expects = is(value, end, "100-continue");
    return h->expects || refuse(h, &problem_expectation_failed, NULL);
}

/* Reads the fields that concern the transport. */
static bool take_field(struct head *h, const char *data, const struct field *f)
{
    const char *name = data + f->name.at, *name_end = name + f->name.len;
    const char *value = data + f->value.at, *end = value + f->value.len;
    char letter = (char)(*name | 0x20);
    switch (f->name.len) {
    case 4:
        return letter != 'h' || !is(name, name_end, "Host") || take_host(h, data, value, end);
    case 6:
        return letter != 'e' || !is(name, name_end, "Expect") || take_expect(h, value, end);
    case 10:
        if (letter == 'c' && is(name, name_end, "Connection"))
            take_connection(h, value, end);
        return true;
    case 14:
        return letter != 'c' || !is(name, name_end, "Content-Length") ||
               take_content_length(h, value, end);
    case 17:
        return letter != 't' || !is(name, name_end, "Transfer-Encoding") ||
               take_transfer_encoding(h, value, end);
    default:
        return true;
    }
}

static bool read_field(struct head *h, const char *data, const char *line, const char *end)
{
    if (h->n_fields == FIELDS_MAX)
        return refuse(h, &problem_headers_too_large, NULL);
    const char *colon = chars_skip(line, CHAR_TOKEN);
    if (colon == line || *colon != ':')
        return malformed(h, is_blank(*line) ? "A header must not be folded."
                                            : "A header must be a name, a colon and a value, and "
                                              "no space before the colon.");
    const char *value = colon + 1;
    while (is_blank(*value))
        value++;
    const char *value_end = chars_skip(value, CHAR_VALUE);
    if (value_end != end)
        return malformed(h, "A header must not contain control characters.");
    while (value_end > value && is_blank(value_end[-1]))
        value_end--;
    struct field *f = &h->fields[h->n_fields++];
    f->name = span(data, line, colon);
    f->value = span(data, value, value_end);
    return take_field(h, data, f);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool finish(struct head *h)
{
    if (h->minor > 0 && !h->has_host)
        return malformed(h, "Host is missing.");
    if (h->has_length && h->chunked)
        return malformed(h, "A body has either a Content-Length or chunks, not both.");
    h->persists = !h->says_close && (h->minor > 0 || h->says_keep_alive);
    return true;
}

/* Something that is not HTTP, such as TLS, may never send an LF. */
static bool begins_well(struct head *h, const char *data, size_t len)
{
    if (h->has_request_line || h->line >= len)
        return true;
    char c = data[h->line];
    return c == '\r' || c == '\n' || char_is(c, CHAR_TOKEN) || malformed(h, bad_method);
}

/* `line` is complete: its LF is at `lf`. */
static bool read_line(struct head *h, const char *data, const char *line, const char *lf)
{
    const char *end = lf - 1;
    if (lf == line || *end != '\r')
        return malformed(h, "A line must end in CR and LF.");
    if (end != line)
        return h->has_request_line ? read_field(h, data, line, end)
                                   : read_request_line(h, data, line, end);
    if (!h->has_request_line) /* RFC 9112, 2.2 */
        return true;
    h->len = (uint32_t)(lf + 1 - data);
    return finish(h);
}

enum parse head_parse(struct head *h, const char *data, size_t len)
{
    size_t seen = len < HEAD_LEN_MAX ? len : HEAD_LEN_MAX;
    while (begins_well(h, data, seen)) {
        const char *lf =
            h->searched < seen ? memchr(data + h->searched, '\n', seen - h->searched) : NULL;
        if (!lf) {
            h->searched = (uint32_t)seen;
            if (seen < HEAD_LEN_MAX)
                return PARSE_MORE;
            refuse(h, &problem_headers_too_large, NULL);
            break;
        }
        const char *line = data + h->line;
        h->line = h->searched = (uint32_t)(lf + 1 - data);
        if (!read_line(h, data, line, lf))
            break;
        if (h->len > 0)
            return PARSE_DONE;
    }
    return PARSE_REFUSED;
}
