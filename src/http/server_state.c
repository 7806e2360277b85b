/* See server.h: what handlers, and the parts of the transport, ask of the server.  Any thread. */
#include "http/server_internal.h"

bool server_draining(const struct server *s)
{
    return atomic_load_explicit(&s->draining, memory_order_relaxed);
}

bool server_leaving(const struct server *s)
{
    return atomic_load_explicit(&s->leaving, memory_order_relaxed) || server_draining(s);
}

void *server_context(const struct server *s) { return s->config.app->context; }
struct access *server_access(const struct server *s) { return s->config.access; }
const struct cors *server_cors(const struct server *s) { return s->config.cors; }
const char *server_scheme(const struct server *s) { return s->config.tls ? "https" : "http"; }
