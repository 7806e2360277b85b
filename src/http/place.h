/* The places of connections: those of a loop that rest, its guests, and all that are counted with
 * their address.  Who gets a place, and whose, is for admission.h to say.
 *
 * Each loop knows its own connections, on its thread: those that rest in the order since when, to a
 * second, and all of them by address.  A connection that comes to rest is moved at most once a
 * second, and one that is busy stays in the list until it is found there, so that requests of
 * connections in use cost a comparison each. */
#ifndef HF_HTTP_PLACE_H
#define HF_HTTP_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_SLOTS 1024
#define GUEST_US INT64_C(1000000) /* that a guest has for anything */

struct address;
struct conn;
struct loop;

/* A connection's part. */
struct place {
    struct conn *older, *newer;  /* that rest; for a guest, other guests */
    struct conn *before, *after; /* in the slot of its address */
    int64_t since_us;            /* it rests, or rested, since then; 0: it is not in the list */
    bool is_guest, is_counted;   /* counted: with its address */
};

/* A loop's part. */
struct loop_places {
    struct conn *oldest, *newest; /* that rest */
    struct conn *guests;
    /* By address, those that are counted.  Those that were looked at and did not rest are at the
     * end. */
    struct place_slot {
        struct conn *first, *last;
        size_t n;
    } slots[PLACE_SLOTS];
};

/* A newcomer has got a place. */
void place_enter(struct conn *c);
void place_enter_as_guest(struct conn *c);
/* The connection ends: gives back its place. */
void place_leave(struct conn *c);
/* The connection is not counted with its address any more; does nothing for one that was not. */
void place_uncount(struct conn *c);

/* The connection is idle from now on. */
void place_rest(struct conn *c);
/* The connection waits for the rest of a request, or lingers: it rests since it was last idle. */
void place_rest_on(struct conn *c);
/* The connection was found busy: it is in the list again when it next comes to rest. */
void place_rest_over(struct conn *c);

/* Are these one IPv4 address, or IPv6 addresses of one /64?  `wide`: of one /48. */
bool place_is_same(const struct address *a, const struct address *b, bool wide);
/* The slot of an IPv4 address or of an IPv6 /48. */
struct place_slot *place_slot_of(struct loop *l, const struct address *a);
/* Moves the connection to the end of its slot. */
void place_look_later(struct conn *c);
/* How many connections of the loop have the address of this one, as far as its slot tells; 0: it is
 * not counted. */
size_t place_crowd(const struct conn *c);

#endif
