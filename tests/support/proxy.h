/* The lab's relay between a client and a real server, for tests of what happens when the network
 * fails. */
#ifndef HF_TESTS_SUPPORT_PROXY_H
#define HF_TESTS_SUPPORT_PROXY_H

#include "lab/relay.h"

static inline struct relay *proxy_start(int target_port)
{
    struct hf_err err;
    struct relay *relay = relay_start(target_port, &err);
    hf_check(relay);
    return relay;
}

#endif
