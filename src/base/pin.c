/* See pin.h. */
#include "base/pin.h"

size_t pin_take(struct pin *p, size_t bytes)
{
    lock_take(&p->lock);
    size_t more = bytes > p->counted ? bytes - p->counted : 0;
    p->counted += more;
    p->n_readers++;
    lock_give(&p->lock);
    return more;
}

size_t pin_give(struct pin *p)
{
    size_t less = 0;
    lock_take(&p->lock);
    if (--p->n_readers == 0) {
        less = p->counted;
        p->counted = 0;
    }
    lock_give(&p->lock);
    return less;
}
