/* See door.h.  On the request's HTTP thread, when its head is there.  A server that looks at no
 * Host and lets other sites write pays two comparisons for it. */
#include "http/door.h"

#include <string.h>
#include <strings.h>

#include "http/host.h"
#include "http/route.h"
#include "http/server_internal.h"

static void misdirected(struct request *r) { answer_problem(r, &problem_misdirected, NULL); }
static void cross_site(struct request *r) { answer_problem(r, &problem_cross_site, NULL); }

/* Load balancers ask for health by address.  That matters where names are listed; where loopback is
 * what counts there is no load balancer. */
static bool is_for_us(const struct request *r, const struct hosts *hosts)
{
    bool any_host = r->route && r->route->any_host && !hosts->loopback;
    return any_host || hosts_have(hosts, r->host);
}

static bool changes_nothing(const struct request *r)
{
    return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
           strcmp(r->method, "OPTIONS") == 0;
}

static bool is_from_other_site(const struct request *r)
{
    static const char cross[] = "cross-site";
    if (r->cors_origin)
        return false;
    return (r->origin.data && !host_is_origin(r->host, r->origin)) ||
           (r->fetch_site.len == sizeof cross - 1 &&
            strncasecmp(r->fetch_site.data, cross, sizeof cross - 1) == 0);
}

step_fn door_refusal(const struct request *r)
{
    const struct server_config *config = &r->server->config;
    if (config->hosts && !is_for_us(r, config->hosts))
        return misdirected;
    if (config->refuses_cross_site && is_from_other_site(r) && !changes_nothing(r))
        return cross_site;
    return NULL;
}
