/* URLs that name the hosts of a coordinator:
 *
 *   scheme://[login@]host[:port][,host[:port]...][/path][?name=value&...]
 *
 * url_split cuts one into its parts, which stay in the caller's text; the other functions read
 * them.  What a part means, and which a driver takes, is the driver's.  In login and values %XX
 * stands for a byte.  A fault, HF_BAD_REQUEST, names the part that is wrong, but does not repeat
 * it, since it may contain a password.  Pure functions, O(length); any thread.  PostgreSQL's URLs
 * are libpq's. */
#ifndef HF_NET_URL_H
#define HF_NET_URL_H

#include "base/buf.h"
#include "base/fault.h"

#define URL_HOSTS_MAX 16

struct url_form {
    const char *kind;                /* in faults: "the etcd URL" */
    const char *scheme, *tls_scheme; /* "etcd", "etcds"; the latter may be NULL */
    int port;                        /* of a host without one */
    bool has_path;                   /* a path may follow the hosts */
};

struct url_part {
    const char *text; /* NULL: the URL has no such part */
    size_t len;
};

struct url {
    const struct url_form *form;
    bool is_tls;
    struct url_part login, hosts, path /* with its / */, query /* without its ? */;
};

/* A name, an IPv4 address, or an IPv6 address without its brackets. */
struct url_host {
    struct url_part name;
    int port;
};

struct url_parameter {
    const char *name;
    char **ret;      /* gets the decoded value, which the caller frees; NULL until then */
    bool is_allowed; /* with the rest of this URL */
};

HF_MUST_USE enum hf_result url_split(const char *text, const struct url_form *form, struct url *ret,
                                     struct hf_fault *fault);
/* Sets *ret_user to NULL if it is empty, and *ret_password if there is no colon.  The caller frees
 * them, also after a fault. */
HF_MUST_USE enum hf_result url_login(const struct url *u, char **ret_user, char **ret_password,
                                     struct hf_fault *fault);
HF_MUST_USE enum hf_result url_hosts(const struct url *u, struct url_host ret[URL_HOSTS_MAX],
                                     size_t *ret_n, struct hf_fault *fault);
/* Each parameter occurs at most once, and cert only together with key.  `names` is said if there is
 * another one than the `n` known. */
HF_MUST_USE enum hf_result url_parameters(const struct url *u, const struct url_parameter *known,
                                          size_t n, const char *names, struct hf_fault *fault);

/* Appends host:port, an IPv6 address in brackets. */
void url_put_host(const struct url_host *host, struct buf *out);
/* "http://host:port", or with https; the caller frees it. */
char *url_origin(const struct url_host *host, bool is_tls);
/* Decodes %XX.  Returns NULL if a % is not followed by two hex digits, or is %00. */
char *url_decoded(struct url_part part);
/* Wipes and frees a text.  Accepts NULL. */
void url_free_secret(char *text);
/* For what the driver finds wrong. */
enum hf_result url_bad(const struct url_form *form, const char *what, struct hf_fault *fault);

#endif
