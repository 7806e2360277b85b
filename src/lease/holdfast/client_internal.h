/* What client.c and client_session.c share: the structs behind client.h. */
#ifndef HF_LEASE_HOLDFAST_CLIENT_INTERNAL_H
#define HF_LEASE_HOLDFAST_CLIENT_INTERNAL_H

#include "base/heap.h"
#include "base/table.h"
#include "lease/holdfast/client.h"

/* The pause after a message of the session itself that was not answered. */
#define RETRY_US INT64_C(100000)

struct client_lease {
    struct table_node link; /* in client.leases, by owner */
    struct client *client;
    struct client_claim *claim;       /* NULL: lost, and the caller has not noticed yet */
    struct client_lease *prev, *next; /* in claim->leases */
    struct heap_node due;             /* in client.lease_due: when it ends by itself */
    int64_t expires_us;               /* if it is held: its own end, which renewals move */
    int64_t asked_us;                 /* when the service was last asked for it */
    void *waiter;                     /* the driver's */
    uint8_t owner[LEASE_OWNER_SIZE];
    size_t name_len;
    char name[];
};

struct client_claim {
    struct table_node link; /* in client.claims, by name */
    uint64_t id;
    enum { CLAIM_ASKED, CLAIM_WAITING, CLAIM_HELD, CLAIM_ENDING } stage;
    struct client_lease *leases;
    struct client_claim *ending_prev, *ending_next; /* in client.ending, if it is CLAIM_ENDING */
    struct heap_node due; /* in client.claim_due: when the session has to send something about it */
    uint64_t judged;      /* the number of the newest message whose answer counted (C3) */
    unsigned n_flying;    /* messages about it that are not answered yet, */
    unsigned n_releasing; /* and how many of them are releases */
    unsigned n_owners;    /* owners that had ended */
    bool is_doubtful;     /* an answer was lost: the service may have it */
    bool is_released;     /* the service has said so; it is freed when nothing flies any more */
    bool is_its_turn;     /* the stream has said so since it was last asked for */
    bool cache, is_wanted;
    bool is_told;      /* the service knows that it is in use */
    bool is_unchecked; /* events may have been missed: ask whether it is still held */
    enum hf_mode mode;
    int priority;
    unsigned slots, slot;
    int64_t fence;
    size_t position;
    char agent[CLIENT_AGENT_SIZE];
    uint8_t owner[LEASE_OWNER_SIZE];
    size_t name_len;
    char name[LEASE_NAME_MAX + 1];
};

struct client {
    struct client_config config;
    char session[CLIENT_SESSION_SIZE]; /* "": none */
    int64_t ttl_ms;                    /* as the service has it */
    int64_t proved_us;                 /* the session lives for its TTL from here on (C1) */
    uint64_t opening;                  /* the number of the open under way; 0: none */
    uint64_t keeping;                  /* the number of the newest keep-alive under way; 0: none */
    int64_t keeping_us;                /* when it was sent */
    int64_t retry_us;                  /* the session sends no keep-alive of its own before */
    int64_t used_us;
    uint64_t last_number, last_claim;
    bool has_long_leases; /* some lease has been renewed */
    struct table leases, claims;
    struct heap lease_due, claim_due;
    struct client_claim *ending; /* all that are CLAIM_ENDING */
    struct client_counts counts;
};

/* ---- client.c ---- */

/* The claims of a name, one after the other; NULL: no more. */
struct client_claim *claim_first(const struct client *c, const char *name, size_t name_len);
struct client_claim *claim_next(const struct client_claim *claim);
struct client_claim *claim_owned(const struct client *c, const char *name, size_t name_len,
                                 const uint8_t *owner);
/* Frees a claim; its leases are lost. */
void claim_free(struct client *c, struct client_claim *claim);
/* The service says that it has ended: its leases are lost, and nothing has to be released. */
void claim_lose(struct client *c, struct client_claim *claim);
/* Somebody waits for a cached claim. */
void claim_want(struct client *c, struct client_claim *claim, int64_t now_us);
enum client_result claim_answer(struct client *c, const struct client_message *m,
                                const struct client_answer *a, int64_t now_us);
void lease_free(struct client_lease *l);
void leases_expire(struct client *c, int64_t now_us);
void message_init(struct client *c, struct client_message *m, enum client_kind kind,
                  int64_t now_us);
void message_about(struct client *c, struct client_message *m, enum client_kind kind,
                   struct client_claim *claim, int64_t now_us);

/* ---- client_session.c ---- */

/* Is there a session that is known to live?  Gives up one whose end has passed. */
bool session_is_usable(struct client *c, int64_t now_us);
/* Makes the message that opens the session, unless one is under way. */
enum client_step session_open(struct client *c, int64_t now_us, struct client_message *ret);

#endif
