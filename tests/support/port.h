/* A free TCP port of 127.0.0.1 for a test. */
#ifndef HF_TESTS_SUPPORT_PORT_H
#define HF_TESTS_SUPPORT_PORT_H

/* Returns a free port, which no other test gets before this process ends: a server may start on it
 * later, or stop and start again.  What claims it is a UDP socket with the same number; all tests
 * run at the same time, and those in JavaScript do the same (tests/support/process.mjs).  If
 * `ret_fd` is not NULL, it becomes a socket that listens there. */
int port_free(int *ret_fd);

#endif
