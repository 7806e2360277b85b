/* See url.h. */
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/status.h"

#define HOST_LEN_MAX 255

enum hf_result url_bad(const struct url_form *form, const char *what, struct hf_fault *fault)
{
    return fault_set(fault, HF_BAD_REQUEST, "%s: %s", form->kind, what);
}

void url_free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

char *url_decoded(struct url_part part)
{
    char *out = hf_alloc(part.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.text[i];
        if (c == '%') {
            int high = i + 2 < part.len ? hex_digit(part.text[i + 1]) : -1;
            int low = i + 2 < part.len ? hex_digit(part.text[i + 2]) : -1;
            c = high < 0 || low < 0 ? '\0' : (char)(16 * high + low);
            i += 2;
        }
        if (c == '\0') {
            url_free_secret(out);
            return NULL;
        }
        out[n++] = c;
    }
    return out;
}

static struct url_part part_of(const char *text, const char *end)
{
    return (struct url_part){text, (size_t)(end - text)};
}

/* Cuts off what stands before the first `separator`; *rest becomes NULL with the last part. */
static struct url_part next_part(struct url_part *rest, char separator)
{
    const char *end = rest->text + rest->len;
    const char *found = rest->len ? memchr(rest->text, separator, rest->len) : NULL;
    struct url_part first = part_of(rest->text, found ? found : end);
    *rest = found ? part_of(found + 1, end) : (struct url_part){0};
    return first;
}

/* ---- the parts ---- */

/* What follows "scheme://"; NULL: the text does not begin so. */
static const char *after_scheme(const char *text, const char *scheme)
{
    size_t len = scheme ? strlen(scheme) : 0;
    bool is_it = scheme && strncmp(text, scheme, len) == 0 && strncmp(text + len, "://", 3) == 0;
    return is_it ? text + len + 3 : NULL;
}

enum hf_result url_split(const char *text, const struct url_form *form, struct url *ret,
                         struct hf_fault *fault)
{
    struct url u = {.form = form};
    const char *rest = after_scheme(text, form->scheme), *end = text + strlen(text);
    if (!rest) {
        rest = after_scheme(text, form->tls_scheme);
        u.is_tls = true;
    }
    if (!rest)
        return fault_set(fault, HF_BAD_REQUEST, "%s: it does not begin with %s://", form->kind,
                         form->scheme);
    const char *at = memrchr(rest, '@', strcspn(rest, form->has_path ? "/" : "?"));
    if (at) {
        u.login = part_of(rest, at);
        rest = at + 1;
    }
    const char *query = strchrnul(rest, '?');
    const char *path = form->has_path ? rest + strcspn(rest, "/?") : query;
    u.hosts = part_of(rest, path);
    if (path < query)
        u.path = part_of(path, query);
    if (query < end)
        u.query = part_of(query + 1, end);
    *ret = u;
    return HF_DONE;
}

enum hf_result url_login(const struct url *u, char **ret_user, char **ret_password,
                         struct hf_fault *fault)
{
    struct url_part password = u->login;
    if (!password.text)
        return HF_DONE;
    struct url_part user = next_part(&password, ':');
    *ret_user = user.len ? url_decoded(user) : NULL;
    *ret_password = password.text ? url_decoded(password) : NULL;
    if ((user.len && !*ret_user) || (password.text && !*ret_password))
        return url_bad(u->form, "a % in user or password is not followed by two hex digits", fault);
    return HF_DONE;
}

/* ---- hosts ---- */

/* Returns 0 if the text is no number from 1 to 65535. */
static int parse_port(const char *text, size_t len)
{
    int port = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 5)
            return 0;
        port = 10 * port + (text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

static bool is_host(const char *text, size_t len, bool in_brackets)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool in_name = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c >= 0x80;
        if (!in_name && !(in_brackets && (c == ':' || c == '%')))
            return false;
    }
    return len > 0 && len <= HOST_LEN_MAX;
}

/* Returns what is wrong, or NULL. */
static const char *parse_host(struct url_part part, int port, struct url_host *ret)
{
    const char *end = part.text + part.len;
    const char *bracket = part.len && *part.text == '[' ? memchr(part.text, ']', part.len) : NULL;
    const char *name = part.text + (bracket != NULL);
    const char *colon = bracket    ? bracket + 1 < end ? bracket + 1 : NULL
                        : part.len ? memchr(part.text, ':', part.len)
                                   : NULL;
    const char *stop = bracket ? bracket : colon ? colon : end;
    if (!is_host(name, (size_t)(stop - name), bracket != NULL) || (colon && *colon != ':'))
        return "a host is missing or malformed (IPv6 goes in brackets)";
    ret->name = part_of(name, stop);
    ret->port = colon ? parse_port(colon + 1, (size_t)(end - colon - 1)) : port;
    return ret->port ? NULL : "the port is not a number from 1 to 65535 (IPv6 goes in brackets)";
}

enum hf_result url_hosts(const struct url *u, struct url_host ret[URL_HOSTS_MAX], size_t *ret_n,
                         struct hf_fault *fault)
{
    struct url_part rest = u->hosts;
    size_t n = 0;
    if (!u->form->has_path && memchr(rest.text, '/', rest.len))
        return url_bad(u->form, "a host is missing or malformed: there is no path after the hosts",
                       fault);
    while (rest.text) {
        if (n == URL_HOSTS_MAX)
            return url_bad(u->form, "there are more than 16 hosts", fault);
        const char *wrong = parse_host(next_part(&rest, ','), u->form->port, &ret[n++]);
        if (wrong)
            return url_bad(u->form, wrong, fault);
    }
    *ret_n = n;
    return HF_DONE;
}

void url_put_host(const struct url_host *host, struct buf *out)
{
    bool is_v6 = memchr(host->name.text, ':', host->name.len) != NULL;
    buf_printf(out, "%s%.*s%s:%d", is_v6 ? "[" : "", (int)host->name.len, host->name.text,
               is_v6 ? "]" : "", host->port);
}

char *url_origin(const struct url_host *host, bool is_tls)
{
    struct buf out = {0};
    buf_str(&out, is_tls ? "https://" : "http://");
    url_put_host(host, &out);
    buf_char(&out, '\0');
    return out.data;
}

/* ---- parameters ---- */

static const char *value_of(const struct url_parameter *known, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i].name, name) == 0)
            return *known[i].ret;
    return NULL;
}

enum hf_result url_parameters(const struct url *u, const struct url_parameter *known, size_t n,
                              const char *names, struct hf_fault *fault)
{
    for (struct url_part rest = u->query; rest.text;) {
        struct url_part value = next_part(&rest, '&'), name = next_part(&value, '=');
        size_t i = 0;
        while (i < n && !(known[i].is_allowed && strlen(known[i].name) == name.len &&
                          memcmp(known[i].name, name.text, name.len) == 0))
            i++;
        if (i == n)
            return url_bad(u->form, names, fault);
        if (*known[i].ret)
            return url_bad(u->form, "a parameter is given twice", fault);
        *known[i].ret = value.text ? url_decoded(value) : NULL;
        if (!*known[i].ret || !**known[i].ret)
            return url_bad(u->form,
                           "a parameter is empty, or a % in it is not followed by two hex digits",
                           fault);
    }
    if (!value_of(known, n, "cert") != !value_of(known, n, "key"))
        return url_bad(u->form, "the parameters cert and key go together", fault);
    return HF_DONE;
}
