/* A free TCP port of 127.0.0.1 for a test. */
#ifndef HF_TESTS_SUPPORT_PORT_H
#define HF_TESTS_SUPPORT_PORT_H

/* Returns a free port.  If `ret_fd` is not NULL, it becomes a socket that listens there. */
int port_free(int *ret_fd);

#endif
