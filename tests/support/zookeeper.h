/* What the tests of the ZooKeeper driver share: processes that can be stopped and
 * killed.  Include after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_ZOOKEEPER_H
#define HF_TESTS_SUPPORT_ZOOKEEPER_H

#include "support/lease_calls.h"
#include "support/zookeeper_server.h"

/* A request of a new owner: exclusive. */
struct lease_request zk_asks(const char *key, int64_t ttl_ms, bool queue);
/* Asks and waits until the request is granted; returns how long that took. */
int64_t zk_wait_for(struct lease *l, const struct lease_request *q, int64_t most_ms,
                    struct lease_verdict *ret);

/* A process that takes a lock and renews it five times per TTL, or waits for it.  It prints a line
 * for everything that happens: "waits", "held FENCE", "renewed", "lost", or "failed". */
struct zk_process {
    int pid, out;
    size_t len;
    char line[128], rest[512];
};
void zk_process_start(struct zk_process *p, const char *url, const char *key, int64_t ttl_ms);
/* Reads lines until one begins with the word, for at most `most_ms`.  Returns what follows it. */
int64_t zk_process_await(struct zk_process *p, const char *word, int64_t most_ms);
/* Reads the next line, for at most `most_ms`; false: none came. */
bool zk_process_read(struct zk_process *p, int64_t most_ms);
void zk_process_kill(struct zk_process *p); /* kill -9 */
/* The main function of an executable calls this first: if the arguments are those of such a
 * process, it does not return. */
void zk_process_main(int argc, char **argv);

#endif
