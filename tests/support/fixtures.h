/* Shared parts of the unit tests: seeds, temporary directories, layouts and commands.  Include this
 * file first: it includes cmocka and the headers that cmocka requires before it. */
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
#include "view/view.h"

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
/* A ticket type, of which `prices` are the first n, in the order of def->terms.prices. */
void def_type(struct event_def *def, const char *id, const int64_t *prices, size_t n);
/* Section "A" at 2500 with rows "1", "2" ... */
struct event_def *def_hall(uint32_t rows, uint32_t seats_per_row);

/* ---- commands ---- */

#define ASK_AREAS_MAX 4
#define ASK_TYPES_MAX (SEATS_INLINE + TYPES_MAX)
struct ask {
    struct command c;
    uint32_t seats[SEATS_INLINE], taken[2 * SEATS_INLINE];
    struct area_claim areas[ASK_AREAS_MAX];
    /* of a change: what is taken out of the hold */
    uint32_t removed[SEATS_INLINE];
    struct area_claim removed_areas[ASK_AREAS_MAX];
    struct type_run types[ASK_TYPES_MAX], removed_types[ASK_TYPES_MAX];
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
/* The ticket type of the next `n` places of a hold, or of those that a change adds: first the
 * seats, then the places of areas.  `id` outlives the ask; NULL: none is named. */
void ask_type(struct ask *a, const char *id, uint32_t n);
/* The same for the places of areas that a change removes. */
void ask_remove_type(struct ask *a, const char *id, uint32_t n);
/* A seat that a change keeps as another type; after all that are added, and before any is removed.
 * Its type is named by ask_type. */
void ask_retype(struct ask *a, uint32_t seat);
void ask_cancel(struct ask *a, struct event *e, const struct id *booking);
/* A booking that is to be paid; the provider takes amounts from ASK_AMOUNT_MIN on. */
#define ASK_AMOUNT_MIN 50
void ask_book(struct ask *a, struct event *e, const struct id *hold);
/* Another hold that is to be booked with it. */
void ask_book_also(struct ask *a, const struct id *hold);
/* A fact about a payment that says nothing yet: the caller fills in c.update. */
void ask_update(struct ask *a, struct event *e, const struct id *payment);
void ask_refund(struct ask *a, struct event *e, const struct id *booking, int64_t amount);
/* Joins the waiting list for seats that are chosen, of any section; ask_area makes it a wish for
 * places of an area, and ask_owner names the owner. */
void ask_wait(struct ask *a, struct event *e, uint32_t quantity);
void ask_wait_change(struct ask *a, struct event *e, enum wait_change_kind kind,
                     const struct id *entry);
/* Other terms of an event: the caller fills in c.event_change. */
void ask_terms(struct ask *a, struct event *e);
void ask_price(struct ask *a, uint32_t index, int64_t price);
/* A ticket type that is new or gets other prices, of which `prices` are the first n. */
void ask_new_type(struct ask *a, const char *id, const int64_t *prices, size_t n);
/* Sets an idempotency key and a text that stands for the bytes of the request. */
void ask_key(struct ask *a, const char *key, const char *request);
void ask_close(struct ask *a);
/* The hold or booking that a command makes, names or reads, and why it was refused; a command of a
 * kind that has none fails the test. */
struct hold_row *command_hold(const struct command *c);
struct booking_row *command_booking(const struct command *c);
struct shortage *command_shortage(const struct command *c);
void hash_text(const char *text, uint8_t hash[KEY_HASH_SIZE]);
/* Renders the bytes that stand for the answer to a command with a key. */
void ask_render(const struct command *c, struct buf *out);

#endif
