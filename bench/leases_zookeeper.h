/* ZooKeeper's primitive by hand: an ephemeral node is created and deleted, with the synchronous
 * calls of the official C client.  It has no queue, and its fence would be one more request. */
#ifndef HF_BENCH_LEASES_ZOOKEEPER_H
#define HF_BENCH_LEASES_ZOOKEEPER_H

#define THREADED /* the client's synchronous calls */
#include <zookeeper/zookeeper.h>

#include "base/status.h"
#include "leases_side.h"

#define ZOOKEEPER_TRIES 200
#define ZOOKEEPER_PAUSE_NS 10000000

static void *hand_zookeeper_open(const char *url, void *first)
{
    char host[64];
    int port;
    (void)first;
    if (sscanf(url, "zookeeper://%63[^:/]:%d", host, &port) != 2)
        die("by hand, ZooKeeper is zookeeper://HOST:PORT");
    char address[80];
    snprintf(address, sizeof address, "%s:%d", host, port);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zk = zookeeper_init(address, NULL, TTL_MS, NULL, NULL, 0);
    for (int i = 0; zk && zoo_state(zk) != ZOO_CONNECTED_STATE && i < ZOOKEEPER_TRIES; i++)
        nanosleep(&(struct timespec){.tv_nsec = ZOOKEEPER_PAUSE_NS}, NULL);
    if (!zk || zoo_state(zk) != ZOO_CONNECTED_STATE)
        die("the C client cannot connect");
    return zk;
}

static void hand_zookeeper_close(void *handle) { (void)zookeeper_close(handle); }

static void hand_zookeeper_pair(void *handle, const uint8_t *owner)
{
    if (zoo_create(handle, "/hand", (const char *)owner, OWNER_SIZE, &ZOO_OPEN_ACL_UNSAFE,
                   ZOO_EPHEMERAL, NULL, 0) != ZOK ||
        zoo_delete(handle, "/hand", -1) != ZOK)
        die("ZooKeeper's node was not created");
}

static const struct side hand_zookeeper = {
    .name = "zookeeper_mt",
    .open = hand_zookeeper_open,
    .close = hand_zookeeper_close,
    .pair = hand_zookeeper_pair,
};

#endif
