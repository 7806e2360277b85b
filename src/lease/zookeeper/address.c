/* See address.h. */
#include "lease/zookeeper/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/status.h"

#define SCHEME "zookeeper://"
#define DEFAULT_PORT 2181
#define ROOT_NAME "/holdfast"
#define REPEATED_MIN 8

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return fault_set(fault, HF_BAD_REQUEST, "ZooKeeper URL: %s", what);
}

/* Replaces %XX by the byte in place.  Returns false if there is no such byte, or if it is a NUL. */
static bool percent_decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_digit(in[1]), low = high < 0 ? -1 : hex_digit(in[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return true;
}

static enum hf_result read_user(const char *text, size_t len, struct zk_address *ret,
                                struct hf_fault *fault)
{
    ret->user_password = hf_strndup(text, len);
    char *colon = strchr(ret->user_password, ':');
    if (!colon || colon == ret->user_password)
        return bad(fault, "before @ there must be user:password");
    if (!percent_decode(ret->user_password))
        return bad(fault, "% in the user or password is not followed by two hexadecimal digits");
    return HF_DONE;
}

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._:[]%", c));
}

/* Appends "host:port". */
static enum hf_result read_host(const char *text, size_t len, struct buf *hosts,
                                struct hf_fault *fault)
{
    size_t host_len = len;
    for (size_t i = 0; i < len; i++)
        if (!is_host_char(text[i]))
            return bad(fault, "a host name has a character that cannot be in it");
    const char *colon = memrchr(text, ':', len);
    if (colon && memchr(colon, ']', len - (size_t)(colon - text)))
        colon = NULL; /* it belongs to an IPv6 address in brackets */
    long port = DEFAULT_PORT;
    if (colon) {
        host_len = (size_t)(colon - text);
        char *end;
        port = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || end != text + len || port < 1 || port > 65535)
            return bad(fault, "a port is not a number from 1 to 65535");
    }
    if (host_len == 0)
        return bad(fault, "a host is missing");
    buf_printf(hosts, "%s%.*s:%ld", hosts->len ? "," : "", (int)host_len, text, port);
    return HF_DONE;
}

static enum hf_result read_hosts(const char *text, size_t len, struct zk_address *ret,
                                 struct hf_fault *fault)
{
    struct buf hosts = {0};
    enum hf_result result = HF_DONE;
    for (const char *end = text + len; result == HF_DONE;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t one = (size_t)((comma ? comma : end) - text);
        if (++ret->n_hosts > ZK_HOSTS_MAX)
            result = bad(fault, "more than 16 hosts");
        else
            result = read_host(text, one, &hosts, fault);
        if (!comma)
            break;
        text = comma + 1;
    }
    if (result == HF_DONE)
        ret->hosts = hf_strndup(hosts.data, hosts.len);
    buf_close(&hosts);
    return result;
}

/* When the client library has tried every server of its list it rests for a sixtieth of the
 * session's timeout, also if it was connected to the last one for hours.  A list that repeats the
 * servers lets it reconnect at once. */
static void repeat_hosts(struct zk_address *a)
{
    struct buf servers = {0};
    for (size_t n = 0; n < REPEATED_MIN; n += a->n_hosts)
        buf_printf(&servers, "%s%s", n ? "," : "", a->hosts);
    a->servers = hf_strndup(servers.data, servers.len);
    buf_close(&servers);
}

/* Every part of the path must be a name that ZooKeeper accepts. */
static enum hf_result read_chroot(const char *text, struct zk_address *ret, struct hf_fault *fault)
{
    size_t len = strlen(text);
    if (len && text[len - 1] == '/')
        len--;
    if (len > ZK_CHROOT_MAX)
        return bad(fault, "the path has more than 200 bytes");
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '?' || text[i] == '#')
            return bad(fault, "the path has a character that cannot be in it");
        if (text[i] != '/')
            continue;
        size_t part = strcspn(text + i + 1, "/");
        bool dots = part > 0 && part <= 2 && strspn(text + i + 1, ".") >= part;
        if (i + 1 + part > len || part == 0 || dots)
            return bad(fault, "the path has a part that is empty or made of dots");
    }
    struct buf root = {0};
    buf_put(&root, text, len);
    buf_put(&root, ROOT_NAME, sizeof ROOT_NAME);
    ret->root = root.data;
    return HF_DONE;
}

enum hf_result zk_address_parse(const char *url, struct zk_address *ret, struct hf_fault *fault)
{
    const char *text = url + strlen(SCHEME);
    struct zk_address a = {0};
    size_t len = strcspn(text, "/");
    const char *at = memrchr(text, '@', len);
    enum hf_result result = HF_DONE;
    if (at)
        result = read_user(text, (size_t)(at - text), &a, fault);
    const char *hosts = at ? at + 1 : text;
    if (result == HF_DONE)
        result = read_hosts(hosts, (size_t)(text + len - hosts), &a, fault);
    if (result == HF_DONE)
        result = read_chroot(text + len, &a, fault);
    if (result == HF_DONE) {
        repeat_hosts(&a);
        *ret = a;
    } else {
        zk_address_close(&a);
    }
    return result;
}

void zk_address_close(struct zk_address *a)
{
    if (a->user_password)
        explicit_bzero(a->user_password, strlen(a->user_password));
    free(a->user_password);
    free(a->hosts);
    free(a->servers);
    free(a->root);
    *a = (struct zk_address){0};
}
