/* The follower: the thread that hears of other servers' changes and tells them of ours. */
#ifndef HF_ENGINE_FOLLOW_H
#define HF_ENGINE_FOLLOW_H

#include "base/status.h"

struct engine;
struct event;

HF_MUST_USE enum hf_status follower_start(struct engine *e, struct hf_err *err);
void follower_stop(struct engine *e); /* while the workers still run */
void follower_free(struct engine *e); /* after the workers have stopped */
/* This server changed the event; the others hear of it soon. */
void follower_announce(struct engine *e, struct event *event);

#endif
