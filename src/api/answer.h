/* JSON out: problems (RFC 9457) and the objects of the API.  problem_* work on a request; the
 * renderers are pure, and the engine calls http_render on its worker. */
#ifndef HF_API_ANSWER_H
#define HF_API_ANSWER_H

#include "http/request.h"

/* `detail` NULL: the status' own sentence. */
void answer_problem(struct request *r, enum hf_status status, const char *detail);
/* The same, with members of its own between the two: problem_open(), then `,"seats":[...]` into
 * r->out, then problem_close(). */
void problem_open(struct request *r, enum hf_status status, const char *detail);
void problem_close(struct request *r);
/* All of a problem but its last brace.  True: worth a Retry-After. */
bool problem_write(struct buf *out, enum hf_status status, const char *detail,
                   const char request_id[REQUEST_ID_LEN]);
extern const char type_problem[];

/* engine_config.render: append the body of a 2xx, return its HTTP status. */
int http_render(const struct command *command, struct buf *out);

/* `e` NULL: as created, without the counts of its seats.  `status` 0: as the view shows it. */
void render_event(const struct event_def *def, struct event *e, int status, struct buf *out);
/* For those who may see that a hold is there, but not act on it: the secret of its id is masked. */
void render_hold_masked(const struct event *e, const struct hold_row *h, int64_t now,
                        struct buf *out);
/* A row of the log; `masked` as above. */
void render_audit(const struct event *e, const struct audit_entry *entry, bool masked,
                  struct buf *out);
void render_seat_past(const struct event *e, uint32_t seat, const struct seat_past *past,
                      struct buf *out);
/* `"hold_..."`, with its secret or without. */
void render_id(const char *prefix, const struct id *id, bool masked, struct buf *out);
void render_seat(const struct event *e, uint32_t index, struct buf *out);
const char *hold_status_text(enum hold_status status);
const char *booking_status_text(enum booking_status status);
/* `["Stalls-A-1",...]` */
void render_seats(const struct event *e, const uint32_t *seats, uint32_t n, struct buf *out);

#endif
