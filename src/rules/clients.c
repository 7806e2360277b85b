/* Places by address; see clients.h. */
#include "rules/clients.h"

#include <stdlib.h>

#include "base/client_number.h"
#include "base/hash.h"
#include "base/status.h"

struct client_entry {
    struct table_node node;
    uint64_t client;
    uint32_t places;
};

void clients_init(struct clients *c)
{
    *c = (struct clients){0};
    lock_init(&c->lock);
}

void clients_close(struct clients *c)
{
    table_free_items(&c->by_number);
    lock_close(&c->lock);
}

static struct client_entry *find(const struct clients *c, uint64_t hash, uint64_t client)
{
    struct table_node *x = table_chain(&c->by_number, hash);
    while (x && ((struct client_entry *)x)->client != client)
        x = x->next;
    return (struct client_entry *)x;
}

static void add(struct clients *c, uint64_t client, int64_t places)
{
    uint64_t hash = hash_keyed_with(client, NULL, 0);
    struct client_entry *entry = find(c, hash, client);
    if (!entry) {
        entry = hf_alloc(sizeof *entry);
        entry->client = client;
        table_add(&c->by_number, &entry->node, hash);
    }
    entry->places = (uint32_t)((int64_t)entry->places + places);
    if (!entry->places) {
        table_remove(&c->by_number, &entry->node);
        free(entry);
    }
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
    const struct client_entry *entry = find(c, hash_keyed_with(client, NULL, 0), client);
    uint32_t places = entry ? entry->places : 0;
    lock_give(&c->lock);
    return places;
}
