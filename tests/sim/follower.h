/* Stands in for the follower's thread (engine/follow.h): what a server announces waits here until
 * the test delivers it to another server, or loses it. */
#ifndef HF_TESTS_SIM_FOLLOWER_H
#define HF_TESTS_SIM_FOLLOWER_H

struct engine;
struct event;

/* Tells `to` of every event that `from` has changed since the last call.  Events that `to` has not
 * loaded, or has seen in that state, are no news. */
void sim_follower_deliver(struct engine *from, struct engine *to);
/* Loses those announcements instead. */
void sim_follower_lose(struct engine *from);
/* Asks the event's worker to catch up in its next turn. */
void sim_follower_ask(struct engine *e, struct event *event);

#endif
