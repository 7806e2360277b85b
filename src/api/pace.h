/* How fast one address may write without a key, on a server that has keys (--hold-rate).  Each hold
 * that is made, renewed or changed writes rows that stay, so without a bound one address could fill
 * the disk.  Releasing a hold and booking it are bounded by the holds there are.
 *
 * What is refused has written nothing and does not count: buyers who click on seats that are taken
 * lose nothing.  One is spent before the command is submitted, so that requests at the same time
 * cannot spend the same one, and given back if nothing was written.  Several servers count each for
 * itself.  On HTTP threads. */
#ifndef HF_API_PACE_H
#define HF_API_PACE_H

#include "api/call.h"

#define PACE_BURST 2            /* minutes whose holds may be made at once */
#define PACE_CHANGES_PER_HOLD 6 /* renewals and changes */

/* Names in metrics (http_app.paces). */
extern const char *const pace_names[PACES];

/* Returns false if it came too soon.  The call has been answered then, or its key is being looked
 * up: a repeat of what was granted gets its answer. */
HF_MUST_USE bool pace_spend(struct call *c, enum pace pace);
static inline enum quota_rate pace_quota(enum pace pace)
{
    return QUOTA_OF_APP + (enum quota_rate)pace;
}

#endif
