/* The names that a server answers to.  A browser puts the host of the URL into Host, and no page
 * can change that.  So a server that answers to its own names alone cannot be reached by a page
 * whose own name was made to resolve to this machine (DNS rebinding).
 *
 * A name counts without regard to case, to a port and to a dot at its end.  Addresses are names,
 * too: [::1] and [0:0::1] are the same one.  Parsed once at start; any thread reads it. */
#ifndef HF_HTTP_HOST_H
#define HF_HTTP_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "http/address.h"
#include "http/text.h"

#define HOSTS_MAX 32
#define HOST_NAME_SIZE 254 /* of DNS, with NUL */

struct host_name {
    char text[HOST_NAME_SIZE]; /* empty: it is an address */
    struct address address;
};

/* Zeroed, it has every name. */
struct hosts {
    struct host_name list[HOSTS_MAX];
    size_t n;
    bool loopback; /* also localhost, 127.0.0.0/8 and [::1] */
};

/* Adds the names of a list such as "tickets.example,192.0.2.7,[2001:db8::1]", without ports. */
HF_MUST_USE bool hosts_add(struct hosts *h, const char *list, struct hf_err *err);
/* Adds the host of a URL, which may have a port. */
HF_MUST_USE bool hosts_add_url(struct hosts *h, const char *url, struct hf_err *err);
/* Is it the value of a Host for this server?  A missing one, which only HTTP/1.0 may leave out, and
 * an empty one are from programs, since browsers name a host: they pass unless the names are
 * listed. */
bool hosts_have(const struct hosts *h, struct text host);

/* The name in a Host, without port, brackets and the dot at its end; empty if there is none. */
struct text host_name(struct text host);
/* Does the Origin of a request name the host that the request is for, by HTTP or HTTPS?  A proxy in
 * front may have ended TLS, so the scheme is not compared; the port is. */
bool host_is_origin(struct text host, struct text origin);

#endif
