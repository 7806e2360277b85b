/* Events as admins describe them in JSON: sections of counted or listed rows, areas, categories, a
 * seating plan in pretix's format, and the terms.  Readers fail as those of json/fields.h do.  No
 * state; any thread. */
#ifndef HF_VENUE_EVENT_PARSE_H
#define HF_VENUE_EVENT_PARSE_H

#include "base/vec.h"
#include "model/rows.h"
#include "rules/operations.h"
#include "json/fields.h"

/* Reads the definition in a POST /v1/events, with its seats numbered; for event_def_free. */
HF_MUST_USE bool parse_event(const json_t *json, struct event_def **ret, struct hf_err *err);
/* The same from the body's text, in little memory also if it has a large plan.  *ret_lacks_plan is
 * set in any case; in a body that is no JSON, the name of a plan is searched as text. */
HF_MUST_USE bool parse_event_body(const struct buf *body, bool *ret_lacks_plan,
                                  struct event_def **ret, struct hf_err *err);
/* What is wrong with a definition: sentences that begin with the path of a field. */
#define COMPLAINTS_MAX 100
struct complaints {
    VEC(char *) list; /* complaints_close */
};
void complaints_close(struct complaints *c); /* accepts a zeroed struct */
/* As parse_event_body, but the reading goes on behind what is wrong, up to COMPLAINTS_MAX
 * complaints.  What concerns the parts together, such as an id that two seats have, is looked at
 * once every part is right.  Returns false if there are any complaints. */
HF_MUST_USE bool parse_event_complaints(const struct buf *body, bool *ret_lacks_plan,
                                        struct complaints *complaints, struct event_def **ret);
/* Reads a PATCH /v1/events/{e} into `ret`, which the caller closes in any case. */
HF_MUST_USE bool parse_event_change(const json_t *json, const struct event_def *def,
                                    struct event_change *ret, struct hf_err *err);

#endif
