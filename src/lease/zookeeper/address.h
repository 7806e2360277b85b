/* The address of a ZooKeeper ensemble, and the URL that names it:
 *
 *   zookeeper://[user:password@]host[:port][,host[:port]...][/chroot]
 *
 * In user and password %XX stands for a byte.  The port is 2181 unless it is given.  No state; any
 * thread. */
#ifndef HF_LEASE_ZOOKEEPER_ADDRESS_H
#define HF_LEASE_ZOOKEEPER_ADDRESS_H

#include "net/url.h"

#define ZK_CHROOT_MAX 200

struct zk_address {
    char *hosts;         /* "host:port,host:port", for people */
    char *user_password; /* "user:password"; NULL: none */
    char *root;          /* the node below which all locks are: "/chroot/holdfast" */
    char *servers;       /* the same for the client library, each several times */
    size_t n_hosts;
};

/* HF_BAD_REQUEST: the fault names the part of the URL that is wrong, but does not repeat it, since
 * it may contain a password. */
HF_MUST_USE enum hf_result zk_address_parse(const char *url, struct zk_address *ret,
                                            struct hf_fault *fault);
/* Overwrites the password before it frees it.  Accepts a zeroed address. */
void zk_address_close(struct zk_address *a);

#endif
