/* The answers that are stored under idempotency keys, as Stripe keeps them: per account, for a day.
 * A key whose request is still being worked on is there too, without an answer.  Belongs to the
 * thread of the bank. */
#ifndef HF_SANDBOX_ANSWERS_H
#define HF_SANDBOX_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/table.h"

#define ANSWERS_MAX 20000 /* beyond that the oldest is forgotten */
#define ANSWER_KEPT_MS (INT64_C(24) * 3600 * 1000)
#define ANSWER_KEY_MAX 255
#define ANSWER_REQUEST_SIZE 32

struct stored_answer {
    struct table_node link;      /* in answers.by_key */
    struct stored_answer *newer; /* in the order in which they were stored */
    int64_t account;
    char *key;
    uint8_t digest[DIGEST_SIZE]; /* of the operation and its parameters */
    int status;                  /* of HTTP; 0: in flight */
    char *body;
    size_t len;
    int64_t stored_ms;
    char request_id[ANSWER_REQUEST_SIZE]; /* of the request that was carried out */
};

/* Empty if it is zeroed. */
struct answers {
    struct table by_key;                   /* by account and key */
    struct stored_answer *oldest, *newest; /* of those with an answer */
    size_t n;                              /* with an answer */
};

void answers_close(struct answers *a);
/* NULL: nothing is known of the key. */
struct stored_answer *answers_find(const struct answers *a, int64_t account, const char *key);
/* Notes that a request with this key, which is not known yet, is being worked on. */
struct stored_answer *answers_begin(struct answers *a, int64_t account, const char *key,
                                    const uint8_t digest[DIGEST_SIZE]);
/* Its answer, which is copied. */
void answers_store(struct answers *a, struct stored_answer *answer, int status, const char *body,
                   size_t len, int64_t now_ms);
/* Forgets a key that has no answer: its request may be made again. */
void answers_forget(struct answers *a, struct stored_answer *answer);
/* Forgets one answer that is too old at `now_ms`, or one too many.  Returns it, for answer_free;
 * NULL: there is none. */
struct stored_answer *answers_expire(struct answers *a, int64_t now_ms);
void answer_free(struct stored_answer *answer);

#endif
