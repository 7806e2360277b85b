/* See queue.h. */
#include "lease/zookeeper/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_HOLDER "@h-"
#define MARK_WAITER "@w-"
#define MARK_LEN (sizeof MARK_HOLDER - 1)
/* "@w-OWNER-e" */
#define HEAD_LEN (MARK_LEN + ZK_OWNER_LEN + 2)

/* ---- names of locks ---- */

/* A dot is encoded at the beginning only: the names "." and ".." are not allowed. */
static bool is_plain(unsigned char c, bool first)
{
    return c > ' ' && c < 0x7f && c != '%' && c != '/' && !(first && c == '.');
}

void zk_name_encode(const char *key, size_t len, char ret[ZK_NAME_SIZE])
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = ret;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)key[i];
        if (is_plain(c, i == 0)) {
            *out++ = (char)c;
            continue;
        }
        *out++ = '%';
        *out++ = digits[c >> 4];
        *out++ = digits[c & 15];
    }
    *out = '\0';
}

bool zk_name_decode(const char *name, char ret[LEASE_NAME_MAX + 1])
{
    size_t len = 0;
    for (const char *in = name; *in; in++) {
        char c = *in;
        if (c == '%') {
            int high = hex_digit(in[1]), low = high < 0 ? -1 : hex_digit(in[2]);
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            in += 2;
        }
        if (len == LEASE_NAME_MAX)
            return false;
        ret[len++] = c;
    }
    ret[len] = '\0';
    char again[ZK_NAME_SIZE];
    zk_name_encode(ret, len, again);
    return len > 0 && strcmp(again, name) == 0;
}

/* ---- nodes ---- */

void zk_node_name(const uint8_t owner[LEASE_OWNER_SIZE], enum hf_mode mode, bool holds,
                  char ret[ZK_NODE_SIZE])
{
    char text[ZK_OWNER_LEN + 1];
    lease_owner_text(owner, text);
    snprintf(ret, ZK_NODE_SIZE, "%s%s-%c%s", holds ? MARK_HOLDER : MARK_WAITER, text,
             mode == HF_SHARED ? 's' : 'e', holds ? "" : "-");
}

bool zk_node_parse(const char *name, struct zk_node *ret)
{
    size_t len = strlen(name);
    bool holds = strncmp(name, MARK_HOLDER, MARK_LEN) == 0;
    if (len < HEAD_LEN || len >= ZK_NODE_SIZE ||
        (!holds && strncmp(name, MARK_WAITER, MARK_LEN) != 0))
        return false;
    const char *owner = name + MARK_LEN, *tail = owner + ZK_OWNER_LEN;
    for (size_t i = 0; i < ZK_OWNER_LEN; i++)
        if (hex_digit(owner[i]) < 0)
            return false;
    if (tail[0] != '-' || (tail[1] != 'e' && tail[1] != 's'))
        return false;
    long long sequence = 0;
    if (holds ? tail[2] != '\0' : tail[2] != '-')
        return false;
    if (!holds) {
        char *end;
        sequence = strtoll(tail + 3, &end, 10);
        if (end == tail + 3 || *end || sequence < INT32_MIN || sequence > INT32_MAX)
            return false;
    }
    *ret = (struct zk_node){.mode = tail[1] == 's' ? HF_SHARED : HF_EXCLUSIVE,
                            .sequence = (int32_t)sequence,
                            .holds = holds};
    memcpy(ret->name, name, len + 1);
    memcpy(ret->owner, owner, ZK_OWNER_LEN);
    return true;
}

/* ---- lists ---- */

void zk_list_add(struct zk_list *list, const char *name)
{
    struct zk_node node;
    if (strcmp(name, ZK_LATCH) == 0)
        list->is_latched = true;
    if (!zk_node_parse(name, &node))
        return;
    if (node.holds)
        *vec_push(&list->holders) = node;
    else
        *vec_push(&list->waiters) = node;
}

static int by_sequence(const void *a, const void *b)
{
    return zk_sequence_compare(((const struct zk_node *)a)->sequence,
                               ((const struct zk_node *)b)->sequence);
}

void zk_list_sort(struct zk_list *list)
{
    if (list->waiters.n > 1)
        qsort(list->waiters.v, list->waiters.n, sizeof *list->waiters.v, by_sequence);
}

void zk_list_clear(struct zk_list *list)
{
    list->exists = list->is_latched = false;
    vec_clear(&list->holders);
    vec_clear(&list->waiters);
}

void zk_list_close(struct zk_list *list)
{
    vec_close(&list->holders);
    vec_close(&list->waiters);
}

/* ---- judging ---- */

static bool conflicts(enum hf_mode a, enum hf_mode b)
{
    return a == HF_EXCLUSIVE || b == HF_EXCLUSIVE;
}

static const struct zk_node *conflicting_holder(const struct zk_list *list, const char *owner,
                                                enum hf_mode mode)
{
    for (size_t i = 0; i < list->holders.n; i++)
        if (strcmp(list->holders.v[i].owner, owner) != 0 &&
            conflicts(list->holders.v[i].mode, mode))
            return &list->holders.v[i];
    return NULL;
}

void zk_view_init(struct zk_view *view, const struct zk_list *list, const char *owner,
                  enum hf_mode mode)
{
    *view = (struct zk_view){0};
    for (size_t i = 0; i < list->holders.n && !view->lease; i++)
        if (strcmp(list->holders.v[i].owner, owner) == 0)
            view->lease = &list->holders.v[i];
    for (size_t i = 0; i < list->waiters.n && !view->place; i++) {
        const struct zk_node *w = &list->waiters.v[i];
        if (strcmp(w->owner, owner) == 0) {
            view->place = w;
        } else {
            view->before++;
            if (conflicts(w->mode, mode))
                view->awaits = w;
        }
    }
    const struct zk_node *holder = conflicting_holder(list, owner, mode);
    view->is_held = holder != NULL;
    if (!view->awaits)
        view->awaits = holder;
    if (list->waiters.n > 0) {
        const struct zk_node *first = &list->waiters.v[0];
        if (first != view->place && !conflicting_holder(list, first->owner, first->mode))
            view->called = first;
    }
}

bool zk_view_may_take(const struct zk_view *view, const struct zk_list *list, bool queue)
{
    return !view->awaits || (!queue && list->holders.n == 0);
}
