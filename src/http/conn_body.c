/* See conn_internal.h: how much of a body is kept. */
#include <stdio.h>

#include "http/admission.h"
#include "http/conn_internal.h"
#include "http/server_internal.h"

#define BODIES_BYTES_MAX ((size_t)256 << 20) /* that bodies may take, of all threads */

static void too_much_at_once(struct request *r) { answer_problem(r, &problem_overloaded, NULL); }

static void too_large(struct request *r)
{
    char detail[64];
    (void)snprintf(detail, sizeof detail, "body must have at most %zu bytes", r->upload.max);
    answer_problem(r, &problem_body_too_large, detail);
}

step_fn conn_body_refusal(const struct request *r)
{
    return r->head.has_length && r->head.length > r->upload.max ? too_large : NULL;
}

/* Does the budget of bodies allow `len` bytes in all for this one? */
static bool count_body(struct request *r, size_t len)
{
    atomic_size_t *all = &r->server->body_bytes;
    if (len <= BLOCK_BODY_FREE || len <= r->upload.counted)
        return true;
    size_t more = 2 * len - r->upload.counted; /* buffers grow by doubling */
    if (atomic_fetch_add(all, more) + more > BODIES_BYTES_MAX) {
        atomic_fetch_sub(all, more);
        return false;
    }
    r->upload.counted += more;
    return true;
}

/* The same, where other bodies of which only a part has come may have to make room. */
static bool count_body_first(struct request *r, size_t len)
{
    bool counted = count_body(r, len);
    while (!counted && admission_make_room(r->conn, ROOM_BODIES))
        counted = count_body(r, len);
    return counted;
}

bool conn_keep_part(struct request *r, struct text part)
{
    struct upload *u = &r->upload;
    bool fits = !u->discards && part.len <= u->max - r->body.len;
    size_t len = r->body.len + part.len;
    if (fits && (len <= BODY_MAX || request_admit_large(r)) && count_body_first(r, len)) {
        buf_put(&r->body, part.data, part.len);
        return true;
    }
    if (!u->discards) {
        u->discards = true;
        r->step = fits ? too_much_at_once : too_large;
        u->drained = fits ? 0 : len - u->max;
        buf_close(&r->body);
    } else {
        u->drained += part.len;
    }
    return u->drained <= BODY_DRAIN_MAX;
}
