/* `holdfast event watch`: prints the stream of an event. */
#ifndef HF_CLI_EVENT_WATCH_H
#define HF_CLI_EVENT_WATCH_H

#include "cli/resource.h"

/* Returns when the server is out of reach for longer than --timeout, or refuses. */
int event_watch(struct resource_call *c);

#endif
