/* Who is at the other end: addresses, networks of them, and the way back through proxies.  Pure;
 * any thread.  An IPv4 address is IPv4 however it was written: ::ffff:192.0.2.1 is 192.0.2.1. */
#ifndef HF_HTTP_ADDRESS_H
#define HF_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

struct address {
    uint8_t bytes[16]; /* network order; IPv4: the first four, the rest 0 */
    bool v4;
};

struct network {
    struct address address;
    unsigned bits;
};

#define NETWORKS_MAX 64
struct networks {
    struct network list[NETWORKS_MAX];
    size_t n;
};

/* False: neither IPv4 nor IPv6. */
bool address_from_socket(const struct sockaddr *from, struct address *ret);
/* "192.0.2.1", "2001:db8::1", and with a port as some proxies write them: "192.0.2.1:80",
 * "[2001:db8::1]:80".  `text` need not end in NUL. */
bool address_parse(const char *text, size_t len, struct address *ret);

/* What limits per client count by: an IPv4 address, or the /64 of an IPv6 one, since that is what
 * one subscriber gets.  Never 0, and the same after a restart.
 *
 * It keeps addresses out of structures, not out of reach: there is no secret in it, and whoever
 * sees the number can try all four thousand million IPv4 addresses.  It is to be treated as an
 * address, so it does not belong into logs, streams or answers. */
uint64_t address_client(const struct address *a);

/* "10.0.0.0/8,fd00::/8,192.0.2.7": a bare address is a network of one. */
HF_MUST_USE bool networks_parse(const char *text, struct networks *ret, struct hf_err *err);
bool networks_have(const struct networks *networks, const struct address *a);

/* The client behind `peer`: the peer itself unless it is trusted.  Otherwise the values of its
 * X-Forwarded-For headers, joined in order, are walked from the right, since each proxy appends
 * whom it heard: past those that are trusted to the first that is not, or to the leftmost.  What
 * cannot be read ends the walk where it stands, as nothing to the left of it can be believed.  At
 * most FORWARDED_HOPS_MAX entries are looked at. */
#define FORWARDED_HOPS_MAX 32
struct address forwarded_client(const struct networks *trusted, const struct address *peer,
                                const char *const *values, size_t n);

#endif
