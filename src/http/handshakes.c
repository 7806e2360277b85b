/* See handshakes.h. */
#include "http/handshakes.h"

#include "http/conn.h"

#define LOOKS_MAX 64 /* in a turn, for connections that do not go on */

void handshakes_enter(struct conn *c)
{
    struct handshakes *h = &c->loop->handshakes;
    c->handshake = (struct handshake){.older = h->newest, .is_listed = true};
    *(h->newest ? &h->newest->handshake.newer : &h->oldest) = c;
    h->newest = c;
    h->n++;
}

void handshakes_leave(struct conn *c)
{
    struct handshakes *h = &c->loop->handshakes;
    struct handshake *s = &c->handshake;
    if (!s->is_listed)
        return;
    *(s->older ? &s->older->handshake.newer : &h->oldest) = s->newer;
    *(s->newer ? &s->newer->handshake.older : &h->newest) = s->older;
    *s = (struct handshake){0};
    h->n--;
}

bool handshakes_step(struct handshakes *h)
{
    if (h->steps >= HANDSHAKE_STEPS)
        return false;
    h->steps++;
    return true;
}

/* The one that does not go on whose address has most connections, and of these the oldest.  Whether
 * one goes on takes a system call, so only `*looks` of those are asked that would be closed. */
static struct conn *find_halted(const struct handshakes *h, int *looks)
{
    struct conn *found = NULL;
    size_t most = 0;
    for (struct conn *c = h->oldest; c && *looks > 0; c = c->handshake.newer) {
        size_t crowd = place_crowd(c);
        if (found && crowd <= most)
            continue;
        --*looks;
        if (conn_has_unread(c))
            continue;
        found = c;
        most = crowd;
    }
    return found;
}

void handshakes_end_turn(struct handshakes *h)
{
    int looks = LOOKS_MAX;
    struct conn *halted;
    h->steps = 0;
    while (h->n > HANDSHAKES_MAX && (halted = find_halted(h, &looks)))
        conn_close(halted);
}
