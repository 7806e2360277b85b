/* See local_host.h. */
#include "base/local_host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

bool host_is_local(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (*host == '\0' || *host == '/' || *host == '@' || strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
