/* What service.c uses of its thread.  All but service_start_thread are called with the mutex
 * held. */
#ifndef HF_LEASE_HOLDFAST_SERVICE_THREAD_H
#define HF_LEASE_HOLDFAST_SERVICE_THREAD_H

#include "lease/holdfast/service.h"

/* Starts the thread; every signal is blocked in it.  False: there is none to be had. */
bool service_start_thread(struct service *s);
/* Adds a server, unless it is known.  One that is not configured is only added if its scheme is
 * that of the configured ones. */
void service_announce(struct service *s, const char *url, bool is_configured);
/* Takes note of what GET /v1/cell says. */
void service_announced(struct service *s, const json_t *cell);

#endif
