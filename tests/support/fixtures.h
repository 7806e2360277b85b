/* Shared parts of the unit tests: seeds, temporary directories, layouts, commands, and the paper
 * ledger, which does the worker's part around decide.c without a database.  Include this file
 * first: it includes cmocka and the headers that cmocka requires before it. */
#ifndef HF_TESTS_SUPPORT_FIXTURES_H
#define HF_TESTS_SUPPORT_FIXTURES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/random.h"
#include "engine/command.h"
#include "rules/decide.h"
#include "rules/view.h"

#define T0_MS INT64_C(1790000000000) /* the time at which every test begins */
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

/* Returns HF_SEED from the environment, or `usual`. */
uint64_t test_seed(uint64_t usual);
/* Returns HF_STEPS from the environment, or `usual`. */
size_t test_steps(size_t usual);

/* ---- files ---- */

struct temp_dir {
    char path[128];
    char db[160];  /* the path of a database file in it */
    char url[180]; /* "sqlite:" and that path */
};
void temp_dir_make(struct temp_dir *dir);
void temp_dir_remove(struct temp_dir *dir);

/* ---- layouts ---- */

/* New layouts have holds of 10 s, renewable up to 25 s. */
#define DEF_TTL_MS 10000
#define DEF_MAX_MS 25000
struct event_def *def_new(const char *name);
void def_section(struct event_def *def, const char *name, const char *tier, int64_t price);
void def_row(struct event_def *def, const char *name, uint32_t seats); /* of the last section */
void def_area(struct event_def *def, const char *name, int64_t price, int64_t capacity);
/* Section "A" at 2500 with rows "1", "2" ... */
struct event_def *def_hall(uint32_t rows, uint32_t seats_per_row);

/* ---- commands ---- */

#define ASK_AREAS_MAX 4
struct ask {
    struct command c;
    uint32_t seats[SEATS_INLINE], taken[SEATS_INLINE];
    struct area_claim areas[ASK_AREAS_MAX];
    /* of a change: what is taken out of the hold */
    uint32_t removed[SEATS_INLINE];
    struct area_claim removed_areas[ASK_AREAS_MAX];
};
void ask_create_n(struct ask *a, struct event *e, const uint32_t *seats, uint32_t n);
#define ask_create(a, e, ...)                                                                      \
    ask_create_n((a), (e), (const uint32_t[]){__VA_ARGS__},                                        \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
/* A hold without seats, to which ask_area adds places. */
void ask_create_none(struct ask *a, struct event *e);
/* A hold of seats that the engine chooses, of any section and tier. */
void ask_best(struct ask *a, struct event *e, uint32_t quantity, bool adjacent);
/* Adds places of general admission to a hold, to a change or to what is blocked. */
void ask_area(struct ask *a, uint32_t area, uint32_t quantity);
/* Names the owner of a hold; the text outlives the ask. */
void ask_owner(struct ask *a, const char *owner);
/* CMD_SEATS_BLOCK or CMD_SEATS_UNBLOCK without seats, to which ask_area adds places. */
void ask_block_none(struct ask *a, enum command_kind kind, struct event *e);
/* Blocks or unblocks for this channel; the text outlives the ask. */
void ask_channel(struct ask *a, const char *channel);
/* CMD_SEATS_BLOCK or CMD_SEATS_UNBLOCK. */
void ask_seats_n(struct ask *a, enum command_kind kind, struct event *e, const uint32_t *seats,
                 uint32_t n);
#define ask_seats(a, kind, e, ...)                                                                 \
    ask_seats_n((a), (kind), (e), (const uint32_t[]){__VA_ARGS__},                                 \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
/* CMD_EVENT_OPEN, CMD_EVENT_CLOSE, CMD_EVENT_ARCHIVE or CMD_EVENT_CANCEL. */
void ask_event(struct ask *a, enum command_kind kind, struct event *e);
void ask_evict(struct ask *a, struct event *e, const struct id *hold);
void ask_renew(struct ask *a, struct event *e, const struct id *hold, int64_t ttl_ms);
void ask_release(struct ask *a, struct event *e, const struct id *hold);
void ask_confirm(struct ask *a, struct event *e, const struct id *hold, int64_t fence, bool rescue);
/* A change of a hold, by a seller, that adds and removes nothing yet. */
void ask_change(struct ask *a, struct event *e, const struct id *hold, int64_t fence);
void ask_add_n(struct ask *a, const uint32_t *seats, uint32_t n);
void ask_remove_n(struct ask *a, const uint32_t *seats, uint32_t n);
#define ask_add(a, ...)                                                                            \
    ask_add_n((a), (const uint32_t[]){__VA_ARGS__},                                                \
              sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define ask_remove(a, ...)                                                                         \
    ask_remove_n((a), (const uint32_t[]){__VA_ARGS__},                                             \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
void ask_remove_area(struct ask *a, uint32_t area, uint32_t quantity);
void ask_cancel(struct ask *a, struct event *e, const struct id *booking);
/* A booking that is to be paid; the provider takes amounts from ASK_AMOUNT_MIN on. */
#define ASK_AMOUNT_MIN 50
void ask_book(struct ask *a, struct event *e, const struct id *hold);
/* Another hold that is to be booked with it. */
void ask_book_also(struct ask *a, const struct id *hold);
/* A fact about a payment that says nothing yet: the caller fills in c.update. */
void ask_update(struct ask *a, struct event *e, const struct id *payment);
void ask_refund(struct ask *a, struct event *e, const struct id *booking, int64_t amount);
/* Other terms of an event: the caller fills in c.event_change. */
void ask_terms(struct ask *a, struct event *e);
void ask_price(struct ask *a, uint32_t index, int64_t price);
/* Sets an idempotency key and a text that stands for the bytes of the request. */
void ask_key(struct ask *a, const char *key, const char *request);
void ask_close(struct ask *a);
/* The hold or booking that a command makes, names or reads, and why it was refused; a command of a
 * kind that has none fails the test. */
struct hold_row *command_hold(const struct command *c);
struct booking_row *command_booking(const struct command *c);
struct shortage *command_shortage(const struct command *c);
void hash_text(const char *text, uint8_t hash[KEY_HASH_SIZE]);

/* ---- the paper ledger ---- */

struct paper_seat {
    /* as the batches say */
    int64_t hold, expires_at;
    enum seat_status status;
    uint32_t channel;
    /* its row; SEAT_AVAILABLE: it has none */
    enum seat_status row;
    int64_t row_hold, row_fence;
    uint32_t row_channel;
    /* according to the log alone */
    enum seat_status folded;
    uint32_t folded_channel;
    int64_t folded_hold, last_seq;
};
struct paper_area {
    int64_t held, booked, folded_held, folded_booked;
    struct area_blocks blocks;
    int64_t folded_blocked[CHANNELS_MAX + 1]; /* places, by channel */
};
struct paper_event {
    struct event *event;
    struct clock_row clock;
    struct paper_seat *seats;
    struct paper_area *areas;
    size_t n_areas;
    struct event_terms terms;
    enum event_status status, folded_status;
    int64_t folded_seq, folded_fence, folded_at;
};
struct paper_hold {
    struct hold_row row;
    enum hold_status folded;
    enum booking_status folded_booking;
    int64_t folded_fence, folded_until, folded_seq, folded_places;
};

struct paper_payment {
    struct payment_row row;
    enum payment_status folded;
};

/* A ledger in arrays.  It asserts the conditions that the ledger's statements put into each write.
 */
struct paper {
    struct view *view;
    struct decision *decision;
    struct random random;
    int64_t now;
    size_t expire_max; /* due holds that a batch ends before its commands */
    VEC(struct paper_event) events;
    VEC(struct paper_hold) holds;
    VEC(struct booking_row) bookings;
    VEC(struct sale_write) sales;
    VEC(struct booking_row) bookings_past;
    VEC(struct paper_payment) payments;
    VEC(struct refund_row) refunds;
    VEC(struct job_row) jobs;
    VEC(struct webhook_write) webhooks;
    VEC(struct audit_row) audit;
    VEC(struct key_row) keys;
};

void paper_init(struct paper *p, uint64_t seed);
void paper_close(struct paper *p);
/* Takes ownership of `def`; the event gets the next key. */
struct event *paper_event(struct paper *p, struct event_def *def);
struct paper_hold *paper_hold(struct paper *p, int64_t key);
/* The booking of a hold; NULL if there is none. */
struct booking_row *paper_booking(struct paper *p, int64_t key);
/* NULL if there is no such row. */
struct paper_payment *paper_payment(struct paper *p, int64_t payment);
struct refund_row *paper_refund(struct paper *p, int64_t refund);
struct job_row *paper_job(const struct paper *p, int64_t job);
/* Reads the event again from the rows, as the worker does with an event that is stale. */
void paper_reload(struct paper *p, struct event *e);

/* A batch, in the steps of the worker: paper_begin locks every event and ends due holds;
 * paper_decide reads the rows that a command names, decides it, and stores the answer of a success
 * under its key; paper_commit writes and publishes, paper_fail takes everything back. */
void paper_begin(struct paper *p);
/* DEFERRED: the command must wait for the next batch. */
enum decided { DEFERRED, DECIDED };
enum decided paper_decide(struct paper *p, struct ask *a);
void paper_commit(struct paper *p);
void paper_fail(struct paper *p);
/* Runs a batch of one command. */
enum verdict paper_run(struct paper *p, struct ask *a);

/* Renders the bytes that stand for the answer to a command with a key. */
void paper_render(const struct command *c, struct buf *out);

/* For between batches: asserts I1, I2, I3, I5, I6, I9 and I11, that every call and every refund
 * that the state calls for is owed, and that the view equals the ledger. */
void paper_check(struct paper *p);
/* Parts of the above that are about money (paper_money.c). */
void paper_money_read(struct paper *p, int64_t booking, struct money *ret);
void paper_money_write(struct paper *p, const struct ledger_batch *b);
void paper_money_fold(struct paper *p, struct paper_event *pe, const struct audit_row *a);
void paper_money_check(struct paper *p);
void paper_money_close(struct paper *p);
bool paper_blocks_equal(const struct area_blocks *a, const struct area_blocks *b);
/* Prints everything that the worker and other threads can see of the view. */
void paper_dump(const struct paper *p, struct buf *out);

#endif
