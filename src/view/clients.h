/* How many places each keyless address holds, and each IPv6 /48 (base/client_number.h), in the live
 * holds of loaded events.  All views of a server share one table, since an address may hold places
 * of events that different workers own; a mutex is held for each lookup.  Of several servers each
 * counts the holds that it has heard of. */
#ifndef HF_VIEW_CLIENTS_H
#define HF_VIEW_CLIENTS_H

#include <stdint.h>

#include "base/lock.h"
#include "base/slots.h"

struct clients {
    struct lock lock;
    struct slots slots;
};

void clients_init(struct clients *c);
void clients_close(struct clients *c);
/* Adds `places`, which may be negative, to the client's count, and to that of its /48.  O(1),
 * amortised. */
void clients_add(struct clients *c, uint64_t client, int64_t places);
/* `client` is the number of an address, or of a /48. */
uint32_t clients_places(struct clients *c, uint64_t client);

#endif
