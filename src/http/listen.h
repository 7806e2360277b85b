/* ADDR:PORT to a listening socket.  Called by the main thread of a program, as it starts and as it
 * stops. */
#ifndef HF_HTTP_LISTEN_H
#define HF_HTTP_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/status.h"

struct listen_address {
    struct sockaddr_storage addr;
    socklen_t len;
};

#define LISTEN_QUEUE_MAX 4096 /* connections that wait to be accepted */
/* How many bytes the kernel takes of an answer before it can send them.  Without this limit it
 * takes megabytes for each client that does not read: memory of the machine that no budget of ours
 * counts, one copy for each client.  Bytes under way to the client come on top, so no client gets
 * slower. */
#define LISTEN_UNSENT_MAX (128 * 1024)
#define LISTEN_TEXT_SIZE (INET6_ADDRSTRLEN + 16)

/* "127.0.0.1:8080", "[::1]:0", "localhost:8080". */
HF_MUST_USE bool listen_parse(const char *text, struct listen_address *ret, struct hf_err *err);
bool listen_is_loopback(const struct listen_address *a);
/* Opens a non-blocking listening socket. */
HF_MUST_USE bool listen_open(const struct listen_address *a, int *ret_fd, struct hf_err *err);
/* From now on the kernel ignores new attempts to connect; those that have begun can be completed,
 * and accepted.  A client that is ignored tries again after a second. */
void listen_ignore_new(int fd);
/* Writes where the socket really listens, as in a URL. */
void listen_text(int fd, char out[LISTEN_TEXT_SIZE]);

#endif
