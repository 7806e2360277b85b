/* A small application on the transport, and clients of it on socket pairs.  There are no threads:
 * the test says when the loop has its turn, when work is done and what time it is, so that whole
 * connections are driven step by step.
 *
 *   GET  /now          "now", at once                     GET  /stream    changes of site->topic
 *   GET  /wait/NAME    "waited NAME", after site_finish   POST /echo      the body, up to 64 KiB
 *   GET  /await/NAME   the same, see site->n_gone
 *   POST /wait/NAME    the same                           POST /large     its length, up to 1 MiB
 *   GET  /bytes/N      N bytes, see site_byte             POST /seller    needs a key: SITE_KEY
 *   GET  /shared/NAME  SITE_SHARED_LEN bytes that all answers of a name ("a", "b") share
 *   PUT  /echo         its length                         PUT  /seller    needs a key: SITE_KEY
 *   GET  /health       "well", also while draining
 *
 * Nothing here asserts by cmocka, so that the fuzz target uses it too. */
#ifndef HF_TESTS_SUPPORT_SITE_H
#define HF_TESTS_SUPPORT_SITE_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/pin.h"
#include "http/server_internal.h"

#define SITE_KEY "sell-0123456789abcdef0123456789abcdef"
#define SITE_SHARED_LEN ((size_t)200 * 1024)
#define SITE_LARGE_MAX ((size_t)1024 * 1024)

struct site {
    struct clock_fake clock;
    struct metrics *metrics;
    struct access access;
    struct server *server;
    struct loop *loop;
    struct site_topic {
        int64_t seq;
        size_t padding;  /* bytes in each message */
        int64_t cost_us; /* time that passes while one is encoded */
        size_t encoded;  /* messages */
        bool ended;
        size_t refs; /* that the transport has */
    } topic;
    struct pin shared[2]; /* of /shared/a and /shared/b */
    char *shared_body;
    size_t n_shared_readers;
    size_t bytes_max; /* N of /bytes/N is below this */
    struct http_app app;
    pthread_mutex_t lock; /* of what follows, since a test's thread may finish work */
    struct work *work;    /* requests that wait, the oldest first */
    size_t n_work;
    size_t n_gone; /* requests for /await/NAME whose clients went away */
    size_t bodies; /* answers of /bytes that have not been given back */
};

void site_open(struct site *s);
/* The same with several loops; site->loop is the first, and may be set to another. */
void site_open_loops(struct site *s, unsigned n);
/* Finishes all work, then closes all connections. */
void site_close(struct site *s);
/* Gives the loop `n` turns. */
void site_turn(struct site *s, int n);
/* Lets time pass, in steps of 50 ms or in one. */
void site_pass(struct site *s, int64_t us);
void site_jump(struct site *s, int64_t us);
/* Finishes the request for /wait/NAME, or the n-th of those that wait.  Returns false if there is
 * none. */
bool site_finish(struct site *s, const char *name);
bool site_finish_nth(struct site *s, size_t n);
/* How many connections there are. */
size_t site_connections(const struct site *s);
/* The memory that is in use for requests: blocks that are borrowed, and requests. */
size_t site_blocks_in_use(const struct site *s);
/* The byte of /bytes/N at this place. */
char site_byte(size_t at);

/* ---- clients ---- */

struct client {
    struct site *site;
    int fd;        /* -1: closed */
    struct buf in; /* what has been received and not been read as an answer */
    char *last;    /* the answer that was taken last */
    bool ended;    /* the server has closed its side */
    bool failed;   /* the socket says that the server has closed without reading everything */
};

struct reply {
    int status; /* 0: there is no whole answer */
    bool close; /* Connection: close */
    struct text head, body;
};

/* `room`: how much of an answer the sockets hold; 0: as much as usual. */
void client_open(struct client *c, struct site *s, int room);
/* The same for a client that comes from this address, IPv4 or IPv6. */
void client_open_from(struct client *c, struct site *s, const char *address);
/* Closes the socket; what has been received stays. */
void client_leave(struct client *c);
void client_close(struct client *c);
/* Sends as much as the socket takes.  Returns how much that is. */
size_t client_write(struct client *c, const char *data, size_t len);
/* Sends all of it, which must fit. */
void client_send(struct client *c, const char *text);
/* The client will send no more. */
void client_finish(struct client *c);
/* Receives at most `len` bytes of what is there.  Returns how many. */
size_t client_read(struct client *c, size_t len);
/* Takes the next answer out of what has been received; *ret_reply is valid until the next call.
 * `to_head`: it answers a HEAD and has no body.  Returns false if it is not there yet. */
bool client_take(struct client *c, bool to_head, struct reply *ret_reply);
/* Gives the loop some turns and receives everything; then as client_take. */
bool client_reply(struct client *c, bool to_head, struct reply *ret_reply);
/* The value of a header of an answer; empty with data NULL if there is none. */
struct text reply_header(const struct reply *r, const char *name);

#endif
