/* See pace.h. */
#include "api/pace.h"

#include "api/idempotency.h"

_Static_assert(PACES == QUOTA_APP_MAX, "each has a name");
const char *const pace_names[PACES] = {"holds", "changes"};

void api_hold_limits(uint32_t holds_per_minute, struct quota_limits *ret)
{
    uint32_t changes = PACE_CHANGES_PER_HOLD * holds_per_minute;
    ret->rates[pace_quota(PACE_HOLDS)] =
        (struct quota_pace){holds_per_minute, PACE_BURST * holds_per_minute};
    ret->rates[pace_quota(PACE_CHANGES)] = (struct quota_pace){changes, PACE_BURST * changes};
}

bool pace_spend(struct call *c, enum pace pace)
{
    int64_t wait_us = 0;
    if (access_spend(&c->http, pace_quota(pace), &wait_us)) {
        c->has_spent = true;
        c->spent = pace;
        return true;
    }
    if (key_is_unused(c))
        answer_too_soon(&c->http, &problem_too_many_requests, wait_us);
    return false;
}
