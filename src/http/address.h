/* Addresses of clients, networks of addresses, and finding the client behind proxies.  Pure
 * functions.  An IPv4 address is IPv4 however it is written: ::ffff:192.0.2.1 is 192.0.2.1. */
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

/* Returns false if the address is neither IPv4 nor IPv6. */
bool address_from_socket(const struct sockaddr *from, struct address *ret);
/* Parses "192.0.2.1", "2001:db8::1", and addresses with a port as some proxies write them:
 * "192.0.2.1:80", "[2001:db8::1]:80".  `text` need not end in NUL. */
bool address_parse(const char *text, size_t len, struct address *ret);
/* Writes the address as inet_ntop(3) does: "192.0.2.1", "2001:db8::1". */
#define ADDRESS_TEXT_SIZE 46
void address_text(const struct address *a, char ret[ADDRESS_TEXT_SIZE]);

bool address_is_loopback(const struct address *a); /* 127.0.0.0/8 or ::1 */

/* The number that limits per client count by (base/client_number.h).  Never 0.
 *
 * The hash has no secret, so a reader of the number can find the address by trying all four billion
 * IPv4 addresses.  Treat it as an address: it does not belong in logs, streams or answers. */
uint64_t address_client(const struct address *a);

/* Parses a list such as "10.0.0.0/8,fd00::/8,192.0.2.7"; a bare address is a network of one. */
HF_MUST_USE bool networks_parse(const char *text, struct networks *ret, struct hf_err *err);
bool networks_have(const struct networks *networks, const struct address *a);

/* The client behind `peer`: the peer itself unless it is trusted.  Otherwise the values of its
 * X-Forwarded-For headers, joined in order, are read from the right, since each proxy appends the
 * address that it heard from: past trusted addresses to the first that is not trusted, or to the
 * leftmost.  An entry that is not an address ends the walk, as nothing to its left can be believed.
 * At most FORWARDED_HOPS_MAX entries are read. */
#define FORWARDED_HOPS_MAX 32
struct address forwarded_client(const struct networks *trusted, const struct address *peer,
                                const char *const *values, size_t n);

#endif
