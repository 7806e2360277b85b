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

/* Whether one goes on takes a system call, so only those are asked that would be closed, and no
 * more of them than the turn has looks for. */
static struct conn *find_halted(struct handshakes *h)
{
    struct conn *found = NULL;
    size_t most = 0;
    for (struct conn *c = h->oldest; c && h->looks > 0; c = c->handshake.newer) {
        size_t crowd = place_crowd(c);
        if (found && crowd <= most)
            continue;
        h->looks--;
        if (conn_has_unread(c))
            continue;
        found = c;
        most = crowd;
    }
    return found;
}

void handshakes_begin_turn(struct handshakes *h)
{
    h->steps = 0;
    h->looks = LOOKS_MAX;
}

struct conn *handshakes_excess(struct handshakes *h)
{
    return h->n > HANDSHAKES_MAX ? find_halted(h) : NULL;
}
