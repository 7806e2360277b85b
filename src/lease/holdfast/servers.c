/* See servers.h. */
#include "lease/holdfast/servers.h"

#include <string.h>

size_t servers_find(const struct server_list *s, const char *origin)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->origins[i], origin) != 0)
        i++;
    return i;
}

void servers_add(struct server_list *s, const char *url, bool is_configured)
{
    struct http_origin origin, first;
    if (!http_origin_parse(url, &origin))
        return;
    /* The access key never goes out in plain text if the URL asks for TLS. */
    if (!is_configured &&
        (!http_origin_parse(s->origins[0], &first) || origin.is_tls != first.is_tls))
        return;
    if (servers_find(s, origin.text) < s->n || s->n == SERVERS_MAX)
        return;
    memcpy(s->origins[s->n++], origin.text, sizeof origin.text);
    s->n_configured += is_configured;
}

void servers_learn(struct server_list *s, const json_t *cell, int64_t now_us)
{
    const json_t *one;
    size_t i;
    const char *master = json_string_value(json_object_get(json_object_get(cell, "master"), "url"));
    json_array_foreach(json_object_get(cell, "servers"), i, one)
    {
        const char *url = json_string_value(json_object_get(one, "url"));
        if (url)
            servers_add(s, url, false);
    }
    if (master)
        servers_add(s, master, false);
    s->learned_us = now_us;
}

size_t servers_redirected(const struct server_list *s, const struct http_response *response)
{
    const char *location =
        response->status == 307 ? http_response_header(response, "Location") : NULL;
    struct http_origin origin;
    return location && http_origin_parse(location, &origin) ? servers_find(s, origin.text) : s->n;
}

size_t servers_after(const struct server_list *s, size_t at)
{
    return at + 1 < s->n_configured ? at + 1 : 0;
}
