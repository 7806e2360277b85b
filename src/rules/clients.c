/* Places by address; see clients.h. */
#include "rules/clients.h"

#include <stdlib.h>

#include "base/client_number.h"
#include "base/hash.h"
#include "base/status.h"

void clients_init(struct clients *c)
{
    *c = (struct clients){0};
    lock_init(&c->lock);
}

void clients_close(struct clients *c)
{
    free(c->slots);
    lock_close(&c->lock);
}

static struct client_slot *find(const struct clients *c, uint64_t client)
{
    size_t i = hash_keyed_with(client, NULL, 0) & (c->n - 1);
    while (c->slots[i].client && c->slots[i].client != client)
        i = (i + 1) & (c->n - 1);
    return &c->slots[i];
}

/* Grows the table to twice the slots in use, without the clients that no longer hold anything. */
static void grow(struct clients *c)
{
    struct client_slot *old = c->slots;
    size_t n_old = c->n, live = 0;
    for (size_t i = 0; i < n_old; i++)
        live += old[i].places > 0;
    for (c->n = 256; c->n < live * 4; c->n *= 2)
        ;
    c->slots = hf_alloc(c->n * sizeof *c->slots);
    c->n_used = live;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].places)
            *find(c, old[i].client) = old[i];
    free(old);
}

static void add(struct clients *c, uint64_t client, int64_t places)
{
    if (c->n_used * 2 >= c->n)
        grow(c);
    struct client_slot *slot = find(c, client);
    c->n_used += slot->client == 0;
    slot->client = client;
    slot->places = (uint32_t)((int64_t)slot->places + places);
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
    uint32_t places = c->n ? find(c, client)->places : 0;
    lock_give(&c->lock);
    return places;
}
