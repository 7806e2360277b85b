/* See answers.h. */
#include "sandbox/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

#define SLOTS 32768 /* a power of two, more than ANSWERS_MAX */

void answers_init(struct answers *a)
{
    *a = (struct answers){.slots = hf_alloc(SLOTS * sizeof(struct stored_answer *))};
}

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
    for (size_t i = 0; a->slots && i < SLOTS; i++)
        for (struct stored_answer *s = a->slots[i], *next; s; s = next) {
            next = s->next_in_slot;
            answer_free(s);
        }
    free((void *)a->slots);
    *a = (struct answers){0};
}

static struct stored_answer **slot_of(const struct answers *a, int64_t account, const char *key)
{
    uint64_t hash = hash_keyed_with((uint64_t)account, key, strlen(key));
    return &a->slots[hash & (SLOTS - 1)];
}

struct stored_answer *answers_find(const struct answers *a, int64_t account, const char *key)
{
    struct stored_answer *s = *slot_of(a, account, key);
    while (s && (s->account != account || strcmp(s->key, key) != 0))
        s = s->next_in_slot;
    return s;
}

struct stored_answer *answers_begin(struct answers *a, int64_t account, const char *key,
                                    const uint8_t digest[DIGEST_SIZE])
{
    struct stored_answer *s = hf_alloc(sizeof *s);
    struct stored_answer **slot = slot_of(a, account, key);
    s->account = account;
    s->key = hf_strndup(key, strlen(key));
    memcpy(s->digest, digest, sizeof s->digest);
    s->next_in_slot = *slot;
    *slot = s;
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

static void unlink_from_slot(struct answers *a, struct stored_answer *s)
{
    struct stored_answer **at = slot_of(a, s->account, s->key);
    while (*at != s)
        at = &(*at)->next_in_slot;
    *at = s->next_in_slot;
}

void answers_forget(struct answers *a, struct stored_answer *s)
{
    hf_check(s->status == 0);
    unlink_from_slot(a, s);
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
    unlink_from_slot(a, s);
    return s;
}
