/* A TCP port of 127.0.0.1 of a test's own. */
#ifndef HF_TESTS_SUPPORT_PORT_H
#define HF_TESTS_SUPPORT_PORT_H

/* `ret_fd` listens there; NULL: nobody does. */
int port_free(int *ret_fd);

#endif
