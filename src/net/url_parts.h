/* Parts of the URLs that name a list of HTTP servers: scheme://...@host[:port],host[:port]?... Pure
 * functions; any thread. */
#ifndef HF_NET_URL_PARTS_H
#define HF_NET_URL_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes %XX.  Returns NULL if a % is not followed by two hex digits, or for a control byte.  The
 * caller frees the text, which may be a secret. */
char *url_decoded(const char *text, size_t len);

/* Reads "host[:port]", where the host is a name, an IPv4 address, or an IPv6 address in brackets.
 * Returns NULL and sets *ret_origin to "http://host:port" or "https://host:port", which the caller
 * frees; or returns what is wrong. */
const char *url_origin(const char *text, size_t len, int default_port, bool is_tls,
                       char **ret_origin);

#endif
