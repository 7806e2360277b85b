/* Ordered indexes of the state. */
#include "base/hash.h"
#include "cell/state_internal.h"

void order_add(struct cell_order *o, struct order_node *node)
{
    *node = (struct order_node){.right = o->waiting};
    if (o->waiting)
        o->waiting->left = node;
    o->waiting = node;
}

/* Negative, zero, or positive as the node comes before, at or after the key. */
static int compare(const struct cell_order *o, const struct order_node *node,
                   const struct order_key *key)
{
    struct order_key own = o->key(node);
    if (own.number != key->number)
        return own.number < key->number ? -1 : 1;
    size_t len = own.text.len < key->text.len ? own.text.len : key->text.len;
    int order = len ? memcmp(own.text.data, key->text.data, len) : 0;
    if (order || own.text.len == key->text.len)
        return order;
    return own.text.len < key->text.len ? -1 : 1;
}

/* Splits a treap: what comes before `key` or is `key` goes to the left. */
static void split(const struct cell_order *o, struct order_node *t, const struct order_key *key,
                  struct order_node **ret_left, struct order_node **ret_right)
{
    while (t)
        if (compare(o, t, key) <= 0) {
            *ret_left = t;
            ret_left = &t->right;
            t = t->right;
        } else {
            *ret_right = t;
            ret_right = &t->left;
            t = t->left;
        }
    *ret_left = *ret_right = NULL;
}

/* The weights are keyed: a client that could compute them would choose names that make a list of
 * the tree. */
static void insert(struct cell_order *o, struct order_node *node)
{
    struct order_node **at = &o->root;
    struct order_key key = o->key(node);
    node->weight = hash_keyed_with(++o->n_weights, NULL, 0) | 1;
    while (*at && (*at)->weight >= node->weight)
        at = compare(o, *at, &key) < 0 ? &(*at)->right : &(*at)->left;
    struct order_node *below = *at;
    *at = node;
    split(o, below, &key, &node->left, &node->right);
}

void order_remove(struct cell_order *o, struct order_node *node)
{
    if (node->weight == 0) {
        if (node->right)
            node->right->left = node->left;
        if (node->left)
            node->left->right = node->right;
        else
            o->waiting = node->right;
        return;
    }
    struct order_node **at = &o->root, *left = node->left, *right = node->right;
    struct order_key key = o->key(node);
    while (*at != node)
        at = compare(o, *at, &key) < 0 ? &(*at)->right : &(*at)->left;
    while (left && right)
        if (left->weight >= right->weight) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    *at = left ? left : right;
}

static void complete(struct cell_order *o)
{
    for (struct order_node *node = o->waiting, *next; node; node = next) {
        next = node->right;
        insert(o, node);
    }
    o->waiting = NULL;
}

struct order_node *order_after(struct cell_order *o, struct order_key key, bool inclusive)
{
    struct order_node *found = NULL;
    complete(o);
    for (struct order_node *node = o->root; node;)
        if (compare(o, node, &key) > (inclusive ? -1 : 0)) {
            found = node;
            node = node->left;
        } else {
            node = node->right;
        }
    return found;
}

/* The depth of the treap is logarithmic but for very bad luck. */
static void each_of(struct order_node *node, void (*each)(void *context, struct order_node *node),
                    void *context)
{
    for (; node; node = node->right) {
        each_of(node->left, each, context);
        each(context, node);
    }
}

void order_each(struct cell_order *o, void (*each)(void *context, struct order_node *node),
                void *context)
{
    complete(o);
    each_of(o->root, each, context);
}
