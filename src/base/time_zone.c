/* See time_zone.h.  Any thread. */
#include "base/time_zone.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads one part of a name, as in America/Argentina/Buenos_Aires: a capital, then letters, digits
 * and _ + -.  The database has files whose names begin otherwise, which are no zones. */
static const char *skip_part(const char *at)
{
    if (*at < 'A' || *at > 'Z')
        return NULL;
    while (isalnum((unsigned char)*at) || *at == '_' || *at == '+' || *at == '-')
        at++;
    return at;
}

static bool is_name(const char *name)
{
    const char *at = name;
    if (strlen(name) > TIME_ZONE_LEN_MAX)
        return false;
    while ((at = skip_part(at)) && *at == '/')
        at++;
    return at && !*at;
}

/* Compiled zones begin with these four bytes. */
static bool has_zone(const char *database, const char *name)
{
    char path[1024], head[4] = "";
    int n = snprintf(path, sizeof path, "%s/%s", database, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ok = read(fd, head, sizeof head) == (ssize_t)sizeof head &&
              memcmp(head, "TZif", sizeof head) == 0;
    (void)close(fd);
    return ok;
}

bool time_zone_exists(const char *database, const char *name)
{
    return is_name(name) && (has_zone(database, name) || !has_zone(database, "UTC"));
}
