/* What the handles of one open share: the servers of the cell, the sessions, and one thread,
 * which does all exchanges and sends what the sessions have to send by themselves.
 *
 *   caller's thread --job--> queue --> its thread --HTTP--> servers
 *                  <--done--         <--answers--
 *
 * There is one session for each TTL that is in use, since a session's TTL is that of its locks:
 * usually one.  If there are too many, the nearest takes the lease.  ZooKeeper's sessions are
 * chosen by rules of their own (choose in zookeeper/family.c): they take long to close and may be
 * stuck, and one with a longer TTL is not taken.
 *
 * Connections are kept and used again: as many as there are requests at the same moment, at most
 * SERVICE_RUNNING_MAX, which keep-alives may exceed; beside them SERVICE_POLLS_MAX for requests
 * that wait, and one for the stream of each session that needs one.
 *
 * Servers.  A request goes to the server that answered last.  A server that cannot be reached, that
 * has no master or that stops is left for the next one that the URL names, at once; after a round
 * of these there is a short pause, until the time of the request is up.  A redirection is followed
 * if it names a configured server or one that the cell announces (GET /v1/cell) with the same
 * scheme: a client that uses TLS goes nowhere without it.  A request whose answer was lost is not
 * repeated here, except for keep-alives and reads; the next one goes to another server.
 *
 * One mutex guards everything here.  It is never held during an exchange. */
#ifndef HF_LEASE_HOLDFAST_SERVICE_H
#define HF_LEASE_HOLDFAST_SERVICE_H

#include <pthread.h>

#include "lease/holdfast/address.h"
#include "lease/holdfast/client.h"
#include "lease/holdfast/servers.h"
#include "lease/holdfast/wire.h"
#include "net/http_pool.h"

#define SERVICE_SESSIONS_MAX 8
#define SERVICE_RUNNING_MAX 8
#define SERVICE_POLLS_MAX 4

struct service;

/* A session and its stream. */
struct service_session {
    struct service *service;
    struct client *client; /* NULL: there is no session */
    int64_t ttl_ms;
    unsigned n_jobs; /* that refer to the client */
    struct service_stream *stream;
};

/* A caller that waits for its turn and has no request of its own that waits at the service. */
struct service_waiter {
    struct service_waiter *next; /* in service.waiters */
    uint64_t number;             /* service.n_turns when it asked last, and its position then */
    bool may_poll;               /* a poll is kept for it */
    int fd;                      /* an eventfd: its lease has changed, or it may poll */
};

/* A request of the driver, from when it is made until its answer has been judged. */
struct job {
    struct http_exchange x; /* the first member */
    struct job *next;       /* in the queue, or among those that pause */
    struct service *service;
    struct service_session *session; /* NULL: it is no message, but `method` and `path` */
    struct client_message message;
    const char *method;
    bool reads;       /* it changes nothing, so it may be repeated */
    bool is_poll;     /* it waits for a grant */
    int64_t until_us; /* by wait_now_us */
    struct buf path, body, url;
    struct http_header headers[2];

    /* the thread's */
    size_t at;         /* the server that is asked */
    unsigned n_hops;   /* redirections in a row */
    unsigned n_tries;  /* servers that could not do it */
    int64_t retry_us;  /* when it goes on after a pause */
    bool is_running;   /* handed to the pool */
    bool was_repeated; /* an earlier sending was lost with its connection */
    bool is_cancelled; /* its caller does not wait any more */

    /* out, valid when is_done */
    bool is_done;
    enum client_result result;
    struct hf_fault fault;
    pthread_cond_t *cond; /* signalled when it is done; NULL: nobody waits, and the thread frees
                             it */
    int fd;               /* an eventfd that is written then; -1: none */
};

struct service {
    struct holdfast_address address;
    char *authorization; /* "Bearer ..."; NULL: none */
    const struct clock *clock;
    int64_t timeout_ms;
    void (*on_lost)(void *ctx, const char *key, size_t key_len,
                    const uint8_t owner[LEASE_OWNER_SIZE]); /* see lease_options; may be NULL */
    void *on_lost_ctx;
    struct http_pool *pool; /* the thread's */
    pthread_t thread;

    pthread_mutex_t mutex;  /* guards everything below */
    pthread_cond_t changed; /* an answer of a session came, which others may wait for */
    unsigned refs;          /* handles */
    bool stop;
    struct random random;
    struct server_list servers;
    bool is_asking; /* the cell for its servers */
    struct service_session sessions[SERVICE_SESSIONS_MAX];
    size_t n_sessions;              /* that have ever been in use: the first ones */
    struct job *queue, **queue_end; /* that are to be started */
    struct job *paused;
    VEC(struct job *) running;            /* handed to the pool */
    struct job *polls[SERVICE_POLLS_MAX]; /* requests that wait for a grant */
    struct service_waiter *waiters;       /* that have none of these */
    size_t n_passed;                      /* polls that are free, and kept for a waiter */
    uint64_t n_turns;                     /* of waiters, so far */
    size_t n_running, n_own;              /* other exchanges; messages of the sessions themselves */
    int64_t armed_us;                     /* until when the thread sleeps, by boot time */
};

/* Takes ownership of `address`; starts the thread. */
HF_MUST_USE enum hf_result service_new(struct holdfast_address address,
                                       const struct lease_options *options, struct service **ret,
                                       struct hf_fault *fault);
void service_ref(struct service *s);
/* The last handle ends all sessions, and with them all leases. */
void service_unref(struct service *s);

static inline int64_t service_now_us(const struct service *s) { return clock_boot_us(s->clock); }

/* ---- all of these are called with the mutex held ---- */

/* The session for this TTL, or, if there are too many, the one that is nearest to it. */
struct service_session *service_session_for(struct service *s, int64_t ttl_ms);
/* The lease of this owner, and its session; NULL: none. */
struct client_lease *service_find(struct service *s, const struct lease_request *q,
                                  struct service_session **ret_session);
/* Wakes the thread if this session has something to send earlier than it would look. */
void service_arm(struct service *s, const struct service_session *session);

/* ---- job.c; called with the mutex held ---- */

/* Makes a job for a message of this session; NULL: for a request that is no message. */
struct job *job_new(struct service *s, struct service_session *session, int64_t timeout_ms);
void job_free(struct job *job);
/* Hands it to the thread. */
void job_start(struct job *job);
/* Waits for it; `cond` is the caller's. */
void job_wait(struct job *job);
/* What a result of the job that is no verdict means to the caller; fills the fault. */
enum hf_result job_failure(const struct job *job, enum client_result result,
                           struct hf_fault *fault);
/* The caller of a poll does not wait any more: the exchange is dropped soon. */
void job_cancel(struct job *job);
/* A poll has become free: it is kept for the waiter that is next in its line, which is woken. */
void service_pass_poll(struct service *s);
/* The poll that was kept for this waiter, if there is one, is not needed: the next may have it. */
void service_return_poll(struct service *s, struct service_waiter *w);
/* Takes one of the few polls.  Returns false if all are in use, or kept for other waiters: without
 * that, a newcomer at the end of the line would have it before they wake. */
bool job_make_poll(struct job *job, struct service_waiter *w);

/* ---- without the mutex ---- */

/* One exchange that is no message: GET, or an operator's POST.  On HF_DONE *ret has the JSON. */
HF_MUST_USE enum hf_result service_call(struct service *s, const char *method, const char *path,
                                        bool reads, json_t **ret, struct hf_fault *fault);
/* Asks for the servers of the cell. */
HF_MUST_USE enum hf_result service_learn(struct service *s, json_t **ret, struct hf_fault *fault);

/* ---- service_thread.c ---- */

/* Starts the thread; every signal is blocked in it.  Returns false if there is none to be had. */
bool service_start_thread(struct service *s);

/* ---- stream.c, on the service's thread with the mutex held ---- */

/* Starts or ends the streams as the sessions need them. */
void service_tend_streams(struct service *s);
void service_close_streams(struct service *s);
/* When a stream is to be started again, by boot time; INT64_MAX: never. */
int64_t service_streams_due_us(const struct service *s);
/* Any thread: somebody waits whom only the stream wakes. */
void service_want_streams(struct service *s);

#endif
