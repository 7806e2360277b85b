/* ZooKeeper's four-letter words: a server answers "srvr" on a connection of its own, also if it is
 * not part of a quorum, so they tell why a session cannot be had.  Blocks in name lookups, and
 * otherwise until the deadline; any thread. */
#ifndef HF_LEASE_ZOOKEEPER_WORDS_H
#define HF_LEASE_ZOOKEEPER_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum zk_probe {
    ZK_PROBE_SERVES,
    ZK_PROBE_HAS_NO_QUORUM,
    ZK_PROBE_REFUSES, /* connections */
    ZK_PROBE_SILENT,
    ZK_PROBE_STRANGE, /* it answers, but not as a ZooKeeper does */
    ZK_PROBE_UNKNOWN, /* the name cannot be resolved */
    ZK_PROBE_COUNT
};

/* Asks the server at "host:port". */
enum zk_probe zk_probe(const char *server, int64_t until_us);
/* Sends a word to a server and reads its answer, at most size - 1 bytes.  Returns -1 if it refuses
 * the connection, otherwise the length of the answer. */
int zk_word(const struct sockaddr *to, socklen_t to_len, const char *word, int64_t until_us,
            char *ret, size_t size);

#endif
