/* A running server, as the commands of resource.h call it: its address, the access key, and
 * requests that are repeated until their outcome is known.  Main thread.
 *
 * POST and PATCH carry an Idempotency-Key, and every repetition carries the same one, so an answer
 * that was lost on the way is asked for again without doing anything twice.  GET and DELETE need
 * none. */
#ifndef HF_CLI_REMOTE_H
#define HF_CLI_REMOTE_H

#include <jansson.h>

#include "cli/common.h"
#include "net/http_client.h"

/* The exit codes of these commands, besides 64 and 69. */
enum remote_exit {
    EXIT_REFUSED = 1,          /* the server's answer is no */
    EXIT_NO_SUCH_THING = 2,    /* 404 */
    EXIT_MALFORMED = 65,       /* the server calls the request malformed or too large */
    EXIT_OUTCOME_UNKNOWN = 75, /* it may or may not have been done */
    EXIT_NO_ACCESS = 77,       /* the key is missing, wrong, or of too small a scope */
};
#define REMOTE_EXIT_HELP                                                                           \
    "Exit status: 0; 1 refused, 2 no such event, hold, booking or seat, 64 usage, 65 malformed\n"  \
    "request, 69 server unreachable or unable, 75 outcome unknown, 77 access denied.\n"
#define REMOTE_OPTIONS_HELP                                                                        \
    "  --server URL           default $HOLDFAST_SERVER, or http://127.0.0.1:8080\n"                \
    "  --key-file FILE        file with the access key; default: the key in $HOLDFAST_KEY\n"       \
    "  --cacert FILE          trust these authorities alone; default $HOLDFAST_CACERT, or the "    \
    "system's\n"                                                                                   \
    "  --idempotency-key KEY  repeat a request whose outcome is unknown\n"                         \
    "  --timeout DURATION     how long to try; default 30s\n"                                      \
    "  --json                 print the server's JSON\n"

struct remote {
    const char *command; /* "hold create", for messages */
    /* Set by the command line; NULL if it does not say. */
    const char *server, *key_file, *ca_file, *idempotency_key;
    int64_t timeout_ms;
    /* A server that cannot be reached is tried again, too: for commands that go on for long. */
    bool is_patient;
    bool is_quiet; /* remote_call writes no message: the caller does, or tries another server */
    /* The rest belongs to remote.c. */
    struct http_client *client;
    char *base;  /* the URL without a slash at its end */
    bool is_tls; /* the command line, or its default, says so */
    struct buf authorization;
    char key[256]; /* the Idempotency-Key of the current request */
};

/* Reads the address and the access key.  Returns false, with a message, if they are of no use. */
bool remote_open(struct remote *r);
void remote_close(struct remote *r); /* accepts a zeroed struct */
/* Turns to another server, which gets the same access key: one that the server of the command line
 * has announced, or that server again.  Returns false if a key that is meant to go over TLS would
 * travel in the clear. */
HF_MUST_USE bool remote_turn_to(struct remote *r, const char *url);

/* Makes a request and returns the exit code: 0 after a 2xx, whose body is in `ret`; otherwise a
 * message was written, and `ret` has the problem document if there is one.  `path` begins with a
 * slash; `body` may be NULL. */
int remote_call(struct remote *r, const char *method, const char *path, const json_t *body,
                struct http_response *ret);

/* Reads an answer without an end, of a GET, until it ends or is lost: HF_OK after a 2xx that the
 * server ended.  An answer of another status is in `ret`, and remote_problem tells of it.  Follows
 * one redirection, without the access key, and none that leads away from TLS.  `last_id` is that of
 * the last message, or "". */
enum hf_status remote_stream(struct remote *r, const char *path, const char *last_id,
                             bool (*on_body)(void *ctx, const char *data, size_t len), void *ctx,
                             struct http_response *ret, struct hf_err *err);
/* Writes the problem that an answer tells of to stderr, and returns the exit code. */
int remote_problem(const struct remote *r, const struct http_response *answer);

#endif
