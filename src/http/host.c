/* See host.h.  No state; hosts_have and host_is_origin run for every request of a server that looks
 * at Host, and allocate nothing. */
#include "http/host.h"

#include <string.h>
#include <strings.h>

static bool same(struct text a, const char *b, size_t len)
{
    return a.len == len && strncasecmp(a.data, b, len) == 0;
}

/* ---- what a name is ---- */

struct text host_name(struct text host)
{
    struct text name = host;
    if (host.len && host.data[0] == '[') {
        const char *close = memchr(host.data, ']', host.len), *end = host.data + host.len;
        bool is_whole = close && (close + 1 == end || close[1] == ':');
        name.data++;
        name.len = is_whole ? (size_t)(close - name.data) : 0;
        return name;
    }
    const char *colon = host.len ? memchr(host.data, ':', host.len) : NULL;
    if (colon)
        name.len = (size_t)(colon - host.data);
    if (name.len && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

static bool has_name(const struct hosts *h, struct text name)
{
    for (size_t i = 0; i < h->n; i++)
        if (same(name, h->list[i].text, strlen(h->list[i].text)))
            return true;
    /* The address is here, too, since most programs use it, and it need not be parsed then. */
    return h->loopback && (same(name, "localhost", strlen("localhost")) ||
                           same(name, "127.0.0.1", strlen("127.0.0.1")));
}

static bool has_address(const struct hosts *h, const struct address *a)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct host_name *one = &h->list[i];
        if (!one->text[0] && one->address.v4 == a->v4 &&
            memcmp(one->address.bytes, a->bytes, sizeof a->bytes) == 0)
            return true;
    }
    return h->loopback && address_is_loopback(a);
}

bool hosts_have(const struct hosts *h, struct text host)
{
    struct address address;
    if (!h->n && !h->loopback)
        return true;
    struct text name = host_name(host);
    if (!name.len)
        return h->loopback && !host.len;
    return has_name(h, name) ||
           (address_parse(name.data, name.len, &address) && has_address(h, &address));
}

bool host_is_origin(struct text host, struct text origin)
{
    static const char http[] = "http://", https[] = "https://";
    size_t skipped = sizeof http - 1;
    if (origin.len > sizeof https - 1 && strncasecmp(origin.data, https, sizeof https - 1) == 0)
        skipped = sizeof https - 1;
    else if (origin.len <= skipped || strncasecmp(origin.data, http, skipped) != 0)
        return false;
    return host.len && same(host, origin.data + skipped, origin.len - skipped);
}

/* ---- the operator's list ---- */

/* Labels of letters, digits, - and _, with single dots between. */
static bool is_dns_name(struct text name)
{
    char before = '.';
    for (size_t i = 0; i < name.len; before = name.data[i++]) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' &&
            (c != '.' || before == '.'))
            return false;
    }
    return before != '.' && name.len < HOST_NAME_SIZE;
}

static bool refuse(struct text name, const char *why, struct hf_err *err)
{
    (void)hf_err_set(err, HF_INVALID_REQUEST, "'%.*s' %s", name.len > 100 ? 100 : (int)name.len,
                     name.data, why);
    return false;
}

/* `name` is without port and brackets. */
static bool add(struct hosts *h, struct text name, struct hf_err *err)
{
    struct host_name one = {.text = ""};
    bool is_address = address_parse(name.data, name.len, &one.address);
    bool has_port =
        is_address && (name.data[0] == '[' || (one.address.v4 && memchr(name.data, ':', name.len)));
    if (!is_address && is_dns_name(name))
        memcpy(one.text, name.data, name.len);
    else if (!is_address || has_port)
        return refuse(name, "is not a host name or an address, without a port", err);
    if (h->n == HOSTS_MAX)
        return refuse(name, "is one name too many", err);
    h->list[h->n++] = one;
    return true;
}

/* Takes brackets off, which addresses of IPv6 have in URLs, and the dot at the end of a name. */
static struct text bare(struct text name)
{
    if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
        return (struct text){name.data + 1, name.len - 2};
    if (name.len && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

bool hosts_add(struct hosts *h, const char *list, struct hf_err *err)
{
    for (const char *p = list;; p++) {
        p += strspn(p, " \t");
        struct text name = {p, strcspn(p, ",")};
        p += name.len;
        while (name.len && (name.data[name.len - 1] == ' ' || name.data[name.len - 1] == '\t'))
            name.len--;
        if (!add(h, bare(name), err))
            return false;
        if (!*p)
            return true;
    }
}

bool hosts_add_url(struct hosts *h, const char *url, struct hf_err *err)
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    return add(h, host_name((struct text){start, strcspn(start, "/?#")}), err);
}
