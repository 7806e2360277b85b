/* See answers.h. */
#include "sandbox/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

void answer_free(struct stored_answer *answer)
{
    if (!answer)
        return;
    free(answer->key);
    free(answer->body);
    free(answer);
}

void answers_close(struct answers *a)
{
    for (struct table_node *x = table_first(&a->by_key), *next; x; x = next) {
        next = table_after(&a->by_key, x);
        answer_free((struct stored_answer *)(void *)x);
    }
    table_close(&a->by_key);
    *a = (struct answers){0};
}

static uint64_t hash_of(int64_t account, const char *key)
{
    return hash_keyed_with((uint64_t)account, key, strlen(key));
}

struct stored_answer *answers_find(const struct answers *a, int64_t account, const char *key)
{
    for (struct table_node *x = table_chain(&a->by_key, hash_of(account, key)); x; x = x->next) {
        struct stored_answer *s = (struct stored_answer *)(void *)x;
        if (s->account == account && strcmp(s->key, key) == 0)
            return s;
    }
    return NULL;
}

struct stored_answer *answers_begin(struct answers *a, int64_t account, const char *key,
                                    const uint8_t digest[DIGEST_SIZE])
{
    struct stored_answer *s = hf_alloc(sizeof *s);
    s->account = account;
    s->key = hf_strndup(key, strlen(key));
    memcpy(s->digest, digest, sizeof s->digest);
    table_add(&a->by_key, &s->link, hash_of(account, key));
    return s;
}

void answers_store(struct answers *a, struct stored_answer *s, int status, const char *body,
                   size_t len, int64_t now_ms)
{
    s->status = status;
    s->body = hf_strndup(body, len);
    s->len = len;
    s->stored_ms = now_ms;
    if (a->newest)
        a->newest->newer = s;
    else
        a->oldest = s;
    a->newest = s;
    a->n++;
}

void answers_forget(struct answers *a, struct stored_answer *s)
{
    hf_check(s->status == 0);
    table_remove(&a->by_key, &s->link);
    answer_free(s);
}

struct stored_answer *answers_expire(struct answers *a, int64_t now_ms)
{
    struct stored_answer *s = a->oldest;
    if (!s || (a->n <= ANSWERS_MAX && s->stored_ms + ANSWER_KEPT_MS > now_ms))
        return NULL;
    a->oldest = s->newer;
    if (!a->oldest)
        a->newest = NULL;
    a->n--;
    table_remove(&a->by_key, &s->link);
    return s;
}
