/* Places by address; see clients.h. */
#include "view/clients.h"

#include "base/client_number.h"
#include "base/hash.h"

struct client_slot {
    uint64_t client;
    uint64_t places;
};

static uint64_t hash(uint64_t client) { return hash_keyed_with(client, NULL, 0); }
static bool is_empty(const void *slot) { return ((const struct client_slot *)slot)->places == 0; }
static const struct slots_kind kind = {sizeof(struct client_slot), hash, is_empty};

void clients_init(struct clients *c)
{
    *c = (struct clients){0};
    lock_init(&c->lock);
}

void clients_close(struct clients *c)
{
    slots_close(&c->slots);
    lock_close(&c->lock);
}

static void add(struct clients *c, uint64_t client, int64_t places)
{
    struct client_slot *slot = slots_get(&c->slots, &kind, client);
    slot->places += (uint64_t)places;
}

void clients_add(struct clients *c, uint64_t client, int64_t places)
{
    uint64_t network = client_number_network(client);
    lock_take(&c->lock);
    add(c, client, places);
    if (network)
        add(c, network, places);
    lock_give(&c->lock);
}

uint32_t clients_places(struct clients *c, uint64_t client)
{
    lock_take(&c->lock);
    const struct client_slot *slot = slots_find(&c->slots, &kind, client);
    uint32_t places = slot ? (uint32_t)slot->places : 0;
    lock_give(&c->lock);
    return places;
}
