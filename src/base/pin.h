/* Memory that several slow readers share, such as a seat map of which each of them still has to be
 * sent the rest.  It stays until the last of them is done, and a budget counts it once, however
 * many they are.  Thread-safe: readers come and go on several threads. */
#ifndef HF_BASE_PIN_H
#define HF_BASE_PIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"

/* A zeroed struct is a pin without readers. */
struct pin {
    struct lock lock;
    size_t n_readers;
    size_t counted;      /* bytes that the budget has been charged with */
    atomic_bool revoked; /* its readers are to be cut off, whatever the budget */
};

/* A reader turns out to be slow, and keeps `bytes` alive.  Returns by how much the budget of all
 * grows: by all of it for the first reader, for others by what they keep alive beyond that. */
size_t pin_take(struct pin *p, size_t bytes);
/* That reader is done.  Returns by how much the budget shrinks. */
size_t pin_give(struct pin *p);

#endif
