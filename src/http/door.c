/* See door.h.  On the request's HTTP thread, when its head is there.  A server that looks at no
 * Host and lets other sites write pays a comparison for each of the two. */
#include "http/door.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/admission.h"
#include "http/conn.h"
#include "http/host.h"
#include "http/route.h"
#include "http/server_internal.h"

/* ---- Origin ---- */

/* The length of the name in a Host header, without the port. */
static size_t host_len(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

/* A page of the main port that reads a stream of the streams' own port comes from another origin:
 * is it SCHEME://NAME:PORT, where NAME is the server's name in this request and PORT the main one?
 */
static bool is_own_page(const struct request *r)
{
    const char *origin = r->headers.origin.data;
    if (!origin || !r->conn->streams_only) /* of nearly every request */
        return false;
    const char *host = request_header(r, "Host");
    unsigned page_port = r->server->config.page_port, usual = r->server->config.tls ? 443 : 80;
    char scheme[16], port[16];
    int scheme_len = snprintf(scheme, sizeof scheme, "%s://", server_scheme(r->server));
    if (!host || strncmp(origin, scheme, (size_t)scheme_len) != 0)
        return false;
    origin += scheme_len;
    size_t len = host_len(host);
    (void)snprintf(port, sizeof port, ":%u", page_port);
    return len > 0 && strncasecmp(origin, host, len) == 0 &&
           (strcmp(origin + len, port) == 0 || (page_port == usual && origin[len] == '\0'));
}

const char *door_origin(const struct request *r)
{
    const char *listed =
        cors_match(r->server->config.cors, r->headers.origin.data, r->headers.origin.len);
    if (listed)
        return listed;
    return is_own_page(r) ? r->headers.origin.data : NULL;
}

/* ---- Host, cross-site ---- */

static void misdirected(struct request *r) { answer_problem(r, &problem_misdirected, NULL); }
static void cross_site(struct request *r) { answer_problem(r, &problem_cross_site, NULL); }

/* Load balancers ask for health by address.  That matters where names are listed; where loopback is
 * what counts there is no load balancer. */
static bool is_for_us(const struct request *r, const struct hosts *hosts)
{
    bool any_host = r->route && r->route->any_host && !hosts->loopback;
    return any_host || hosts_have(hosts, r->headers.host);
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
    return (r->headers.origin.data && !host_is_origin(r->headers.host, r->headers.origin)) ||
           (r->headers.fetch_site.len == sizeof cross - 1 &&
            strncasecmp(r->headers.fetch_site.data, cross, sizeof cross - 1) == 0);
}

/* ---- the server, the query ---- */

static void draining(struct request *r)
{
    r->answer.close = true;
    answer_problem(r, &problem_draining, NULL);
}

/* The answer to a guest that is no probe. */
static void no_place(struct request *r) { answer_problem(r, &problem_overloaded, no_place_detail); }

static void too_many_parameters(struct request *r)
{
    answer_problem(r, &problem_invalid_request, "query must have at most 16 parameters");
}

static void wrong_parameters(struct request *r)
{
    char detail[128];
    hf_check(!request_check_query(r, detail, sizeof detail));
    answer_problem(r, &problem_invalid_request, detail);
}

/* While the server drains, a stream is opened and ends at once, with the time to come back: a
 * browser whose stream is refused does not try again. */
static bool may_begin(const struct request *r)
{
    return !server_draining(r->server) ||
           (r->route && (r->route->while_draining || r->route->streams));
}

/* ---- all of it, in order ---- */

step_fn door_refusal(struct request *r)
{
    const struct server_config *config = &r->server->config;
    char detail[128];
    if (config->hosts && !is_for_us(r, config->hosts))
        return misdirected;
    if (config->refuses_cross_site && is_from_other_site(r) && !changes_nothing(r))
        return cross_site;
    if (!access_check(r))
        return r->step;
    if (!may_begin(r))
        return draining;
    if (r->conn->place.is_guest && !(r->route && r->route->while_draining))
        return no_place;
    if (r->n_parameters > PARAMETERS_MAX)
        return too_many_parameters;
    if (r->needs != SCOPE_UNSET && !request_check_query(r, detail, sizeof detail))
        return wrong_parameters;
    return NULL;
}
