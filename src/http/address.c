/* See address.h.  forwarded_client and address_client run for requests without an access key, on
 * the hot path, so they allocate nothing.  Networks are parsed once, at start. */
#include "http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/client_number.h"
#include "base/digest.h"

#define V4_BITS 32
#define V6_BITS 128
#define CLIENT_V6_NARROW 8 /* bytes of a /64 */
#define CLIENT_V6_WIDE 6   /* bytes of a /48 */

static struct address from_v4(const void *bytes)
{
    struct address a = {.v4 = true};
    memcpy(a.bytes, bytes, 4);
    return a;
}

static struct address from_v6(const struct in6_addr *in)
{
    if (IN6_IS_ADDR_V4MAPPED(in))
        return from_v4(in->s6_addr + 12);
    struct address a = {.v4 = false};
    memcpy(a.bytes, in->s6_addr, sizeof a.bytes);
    return a;
}

bool address_from_socket(const struct sockaddr *from, struct address *ret)
{
    if (from->sa_family == AF_INET)
        *ret = from_v4(&((const struct sockaddr_in *)from)->sin_addr);
    else if (from->sa_family == AF_INET6)
        *ret = from_v6(&((const struct sockaddr_in6 *)from)->sin6_addr);
    else
        return false;
    return true;
}

static bool is_port(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return len >= 1 && len <= 5;
}

/* Removes a port and brackets, if there are any. */
static bool strip_port(const char **text, size_t *len)
{
    const char *end = *text + *len;
    if (*len && **text == '[') {
        const char *close = memchr(*text, ']', *len);
        if (!close || (close + 1 < end &&
                       (close[1] != ':' || !is_port(close + 2, (size_t)(end - close) - 2))))
            return false;
        *len = (size_t)(close - *text) - 1;
        (*text)++;
        return memchr(*text, ':', *len) != NULL;
    }
    const char *colon = memchr(*text, ':', *len);
    if (!colon || memchr(colon + 1, ':', (size_t)(end - colon) - 1))
        return true; /* no port, or an IPv6 address */
    *len = (size_t)(colon - *text);
    return is_port(colon + 1, (size_t)(end - colon) - 1);
}

static bool parse_bare(const char *text, size_t len, struct address *ret)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    if (len >= sizeof copy || memchr(text, '\0', len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET, copy, &v4) == 1)
        *ret = from_v4(&v4);
    else if (inet_pton(AF_INET6, copy, &v6) == 1)
        *ret = from_v6(&v6);
    else
        return false;
    return true;
}

bool address_parse(const char *text, size_t len, struct address *ret)
{
    return strip_port(&text, &len) && parse_bare(text, len, ret);
}

void address_text(const struct address *a, char ret[ADDRESS_TEXT_SIZE])
{
    (void)inet_ntop(a->v4 ? AF_INET : AF_INET6, a->bytes, ret, ADDRESS_TEXT_SIZE);
}

bool address_is_loopback(const struct address *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return a->v4 ? a->bytes[0] == 127 : memcmp(a->bytes, one, sizeof one) == 0;
}

/* Hashes the first `len` bytes of the address. */
static uint64_t hash_prefix(const struct address *a, size_t len)
{
    static const char label[] = "holdfast client";
    const uint8_t family = a->v4 ? 4 : 6;
    uint8_t hash[DIGEST_SIZE];
    digest((struct iovec[]){digest_part(label, sizeof label), digest_part(&family, 1),
                            digest_part(a->bytes, len)},
           3, hash);
    uint64_t number;
    memcpy(&number, hash, sizeof number);
    return number;
}

uint64_t address_client(const struct address *a)
{
    if (a->v4)
        return client_number_v4(hash_prefix(a, 4));
    return client_number_v6(hash_prefix(a, CLIENT_V6_WIDE), hash_prefix(a, CLIENT_V6_NARROW));
}

/* ---- networks ---- */

static bool network_parse(const char *text, size_t len, struct network *ret)
{
    const char *slash = memchr(text, '/', len);
    size_t address_len = slash ? (size_t)(slash - text) : len;
    struct network n;
    if (!parse_bare(text, address_len, &n.address))
        return false;
    unsigned max = n.address.v4 ? V4_BITS : V6_BITS;
    n.bits = max;
    if (slash) {
        size_t digits = len - address_len - 1;
        if (!is_port(slash + 1, digits) || digits > 3)
            return false;
        n.bits = 0;
        for (size_t i = 0; i < digits; i++)
            n.bits = n.bits * 10 + (unsigned)(slash[1 + i] - '0');
    }
    if (slash && n.address.v4 && memchr(text, ':', address_len)) /* ::ffff:10.0.0.0/104 */
        n.bits = n.bits >= V6_BITS - V4_BITS ? n.bits - (V6_BITS - V4_BITS) : max + 1;
    *ret = n;
    return n.bits <= max;
}

static const char *skip_blanks(const char *text) { return text + strspn(text, " \t"); }

bool networks_parse(const char *text, struct networks *ret, struct hf_err *err)
{
    struct networks found = {.n = 0};
    for (const char *p = text;; p++) {
        p = skip_blanks(p);
        size_t len = strcspn(p, ","), used = len;
        while (used && (p[used - 1] == ' ' || p[used - 1] == '\t'))
            used--;
        if (found.n == NETWORKS_MAX) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "more than %d networks", NETWORKS_MAX);
            return false;
        }
        if (!network_parse(p, used, &found.list[found.n])) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "'%.*s' is not an address or ADDRESS/BITS",
                             used > 64 ? 64 : (int)used, p);
            return false;
        }
        found.n++;
        p += len;
        if (!*p)
            break;
    }
    *ret = found;
    return true;
}

static bool network_has(const struct network *n, const struct address *a)
{
    size_t whole = n->bits / 8;
    unsigned rest = n->bits % 8;
    if (n->address.v4 != a->v4 || memcmp(n->address.bytes, a->bytes, whole) != 0)
        return false;
    return rest == 0 || (n->address.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0;
}

bool networks_have(const struct networks *networks, const struct address *a)
{
    for (size_t i = 0; i < networks->n; i++)
        if (network_has(&networks->list[i], a))
            return true;
    return false;
}

/* ---- X-Forwarded-For ---- */

/* Finds the last entry of text[0, *len), without the blanks around it; *len becomes the length of
 * what is left of it.  Returns false if it is the first entry. */
static bool entry_last(const char *text, size_t *len, const char **entry, size_t *entry_len)
{
    const char *comma = memrchr(text, ',', *len);
    const char *start = skip_blanks(comma ? comma + 1 : text), *end = text + *len;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *entry = start;
    *entry_len = (size_t)(end - start);
    *len = comma ? (size_t)(comma - text) : 0;
    return comma != NULL;
}

struct address forwarded_client(const struct networks *trusted, const struct address *peer,
                                const char *const *values, size_t n)
{
    struct address client = *peer;
    size_t hops = 0;
    while (n-- > 0) {
        size_t len = strlen(values[n]);
        for (bool more = true; more; hops++) {
            const char *entry;
            size_t entry_len;
            if (hops == FORWARDED_HOPS_MAX || !networks_have(trusted, &client))
                return client;
            more = entry_last(values[n], &len, &entry, &entry_len);
            if (!address_parse(entry, entry_len, &client))
                return client;
        }
    }
    return client;
}
