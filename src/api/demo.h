/* The demo event of `holdfastd --demo`, and what a newcomer may try with it. */
#ifndef HF_API_DEMO_H
#define HF_API_DEMO_H

#include <stdbool.h>

#include "engine/engine.h"

/* Finds the newest event, or creates a demo event if there is none, and pins it.  Waits for the
 * engine, so it is for the main thread, before the server serves. */
HF_MUST_USE bool demo_event(struct engine *e, struct event **ret, struct hf_err *err);
/* Prints commands to try with the event on the server at `url`, for admins too if
 * `everybody_is_admin`, and the addresses of the pages if there are any.  Gives the event back. */
void demo_say(struct event *event, const char *url, bool everybody_is_admin, bool has_pages);

#endif
