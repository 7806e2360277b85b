/* The rows of the ledger, as C.  The rules fill a struct ledger_batch, ledger_write stores it, and
 * the view folds its audit rows: the same structs all the way.  Times are milliseconds since 1970
 * on the ledger's clock, money is in the smallest unit.  Nothing here has side effects.
 *
 * A hold is an append.  Its row lists its seats, and that is all that says who holds a seat:
 * making, renewing, releasing or expiring a hold writes `holds`, the log and the clock row, in the
 * order of their keys.  A seat has a row of its own only while it is booked, or blocked when no
 * hold has it (see seat_row_status).  An event is therefore one row of `sections` per section,
 * whatever its size, and is created in one batch together with other buyers' holds.
 *
 * A row of the log about a seat names the status that the seat had and has.  A row about an area
 * says that `quantity` places passed from one seat status to another.  Places that pass to or from
 * blocked do so in a channel.  The ledger stores the rows of one transition, those of the hold and
 * of all its places, together (ledger/log.h).
 *
 * The chain: a row about a seat or a hold also names the seq of the row before about the same seat
 * or hold, so its history is read from the end to the beginning, one row by its key after another.
 * The end of a hold's chain, to which the cancelling of its booking belongs, is in the hold's row.
 * The end of a seat's chain, its head, is in the view.  So that loading an event need not read its
 * whole log, heads are stored too, HEADS_CHUNK seats in one row, and one such row is written for
 * every HEADS_EVERY rows of the log, in turn: what a row does not know yet is in the log after its
 * seq, which is short. */
#ifndef HF_MODEL_ROWS_H
#define HF_MODEL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/vec.h"
#include "model/actor.h"
#include "model/keys.h"
#include "model/limits.h"
#include "model/payment.h"
#include "model/venue.h"
#include "model/waitlist.h"

enum seat_status { SEAT_AVAILABLE = 0, SEAT_HELD = 1, SEAT_BOOKED = 2, SEAT_BLOCKED = 3 };
enum hold_status { HOLD_NONE, HOLD_ACTIVE, HOLD_EXPIRED, HOLD_RELEASED, HOLD_CONFIRMED };
enum booking_status {
    BOOKING_NONE,
    BOOKING_PENDING,
    BOOKING_CONFIRMED,
    BOOKING_FAILED,
    BOOKING_CANCELLED
};
enum event_status {
    EVENT_OPEN = 1,
    EVENT_CLOSED = 2,
    EVENT_ARCHIVED = 3,
    EVENT_CANCELLED = 4 /* every booking is cancelled, and its money given back */
};

enum audit_object {
    AUDIT_EVENT = 1,
    AUDIT_SEAT,
    AUDIT_AREA,
    AUDIT_HOLD,
    AUDIT_BOOKING,
    AUDIT_PAYMENT,
    AUDIT_WAIT /* an entry of the waiting list */
};
enum audit_cause {
    CAUSE_CREATE = 1,
    CAUSE_HOLD,
    CAUSE_RENEW,
    CAUSE_RELEASE,
    CAUSE_EXPIRE,
    CAUSE_CONFIRM,
    CAUSE_RESCUE,
    CAUSE_BLOCK,
    CAUSE_UNBLOCK,
    CAUSE_OPEN,
    CAUSE_CLOSE,
    CAUSE_EVICT,
    CAUSE_CANCEL,
    CAUSE_CHANGE, /* a hold got other places, or an event other terms */
    CAUSE_ARCHIVE,
    CAUSE_RESTORE, /* the ledger is a restored backup */
    CAUSE_BOOK,    /* a buyer made a booking, which is to be paid, or booked several holds as one */
    CAUSE_PAYMENT, /* a fact about the payment */
    CAUSE_REFUND,  /* the seller gives money back */
    CAUSE_WAITLIST, /* a place goes to the waiting list, or an entry of it has an end of its own */
    CAUSE_PAUSE,    /* the waiting list offers nothing until it is resumed */
    CAUSE_RESUME
};

/* The word for a status of this kind of object, such as "held"; NULL if the number is none. */
const char *status_text(enum audit_object object, int status);

/* ---- an event ---- */

/* The terms that are single values: what they are called in a request and in the struct, the name
 * of the bit that says that a PATCH gives them, and what they are.  Copying, comparing and changing
 * terms follow from this list; ledger/columns.h, venue/event_parse.c and api/render_event.c have
 * one line for each, too.
 *
 *   TEXT    a text that ends with a NUL and is freed; NULL: none
 *   INT     a number, or a time in milliseconds since 1970; 0: none
 *   LOCAL   a time with the offset that it was given with: when it is at the venue */
/* clang-format off */
#define EVENT_PLAIN_TERM_LIST(X) \
    X(name,           EVENT_NAME,           TEXT) \
    X(venue,          EVENT_VENUE,          TEXT) \
    X(venue_address,  EVENT_VENUE_ADDRESS,  TEXT) \
    X(timezone,       EVENT_TIMEZONE,       TEXT) /* as IANA names it */ \
    X(image,          EVENT_IMAGE,          TEXT) /* an https URL, or a path of this server */ \
    X(description,    EVENT_DESCRIPTION,    TEXT) \
    X(metadata,       EVENT_METADATA,       TEXT) /* JSON */ \
    X(starts_at,      EVENT_STARTS_AT,      LOCAL) \
    X(doors_at,       EVENT_DOORS_AT,       LOCAL) \
    X(sales_open_at,  EVENT_SALES_OPEN_AT,  INT) \
    X(sales_close_at, EVENT_SALES_CLOSE_AT, INT) /* none: see event_terms_sales_end */ \
    X(hold_ttl_ms,    EVENT_HOLD_TTL,       INT) \
    X(hold_max_ms,    EVENT_HOLD_MAX,       INT) \
    X(max_per_hold,   EVENT_MAX_PER_HOLD,   INT) \
    X(max_per_owner,  EVENT_MAX_PER_OWNER,  INT) /* places held and booked together; 0: any */ \
    X(lone_seats,     EVENT_LONE_SEATS,     INT) /* enum lone_seats_rule */
/* Those of the waiting list, which requests and answers have in an object `waitlist`. */
#define EVENT_WAIT_TERM_LIST(X) \
    X(offer_ttl_ms,   EVENT_OFFER_TTL,      INT) /* of the waiting list; 0: there is none */ \
    X(wait_alive_ms,  EVENT_WAIT_ALIVE,     INT) /* an entry that nobody reads for so long ends */ \
    X(wait_per_owner, EVENT_WAIT_PER_OWNER, INT) /* live entries of one owner */ \
    X(wait_paused,    EVENT_WAIT_PAUSED,    INT) /* 1: nothing is offered */
#define EVENT_TERM_LIST(X) EVENT_PLAIN_TERM_LIST(X) EVENT_WAIT_TERM_LIST(X)
/* clang-format on */

/* Bits of event_change.given. */
#define EVENT_FIELD_NUMBER(name, bit, kind) bit##_NUMBER,
#define EVENT_FIELD_BIT(name, bit, kind) bit = 1 << bit##_NUMBER,
enum { EVENT_TERM_LIST(EVENT_FIELD_NUMBER) EVENT_FIELDS_N };
enum { EVENT_PLAIN_FIELDS_N = EVENT_OFFER_TTL_NUMBER };
enum event_field { EVENT_TERM_LIST(EVENT_FIELD_BIT) EVENT_FIELDS_ALL = (1 << EVENT_FIELDS_N) - 1 };

/* What becomes of a choice of seats that leaves a single one; see rules/lone.h. */
enum lone_seats_rule {
    LONE_SEATS_ALLOW,
    LONE_SEATS_HINT, /* pages point it out */
    LONE_SEATS_REFUSE
};
/* The word for it, such as "allow"; NULL if the number is none. */
const char *lone_seats_text(int64_t rule);

struct local_time {
    int64_t ms; /* since 1970; 0: none */
    int64_t offset_min;
};

/* A ticket type: full, reduced, child.  Types are only ever added, so a type is known by its index
 * in the terms.  The first one is that of places for which none is named, and of those that were
 * held before the event had types.  `prices` has the index of event_terms.prices; what is not there
 * is TYPE_PRICE_NONE. */
#define TYPE_PRICE_NONE (-1) /* the type costs what the category or area costs */
#define TYPE_PRICE_KEPT (-2) /* of a change: the price stays as it is */
struct ticket_type {
    char *id;   /* of letters, digits, `-` and `_` */
    char *name; /* no control characters; NULL, of a change: it stays as it is */
    VEC(int64_t) prices;
};

/* What an admin may change while the event is on sale; the layout below never changes. */
struct event_terms {
#define EVENT_TERM_TEXT char *
#define EVENT_TERM_INT int64_t
#define EVENT_TERM_LOCAL struct local_time
#define EVENT_TERM_MEMBER(name, bit, kind) EVENT_TERM_##kind name;
    EVENT_TERM_LIST(EVENT_TERM_MEMBER)
    VEC(int64_t) prices; /* of each category, then of each area; see event_def_categories */
    VEC(struct ticket_type) types; /* at most TYPES_MAX */
    VEC(char *) channels; /* channel N is channels.v[N - 1]; sellers add some, none is removed */
};
/* Copies everything; `ret` is closed with event_terms_close. */
void event_terms_copy(const struct event_terms *from, struct event_terms *ret);
void event_terms_close(struct event_terms *terms); /* accepts a zeroed struct */
bool event_terms_equal(const struct event_terms *a, const struct event_terms *b);
/* Writes the given fields (enum event_field) of `from` over `terms`. */
void event_terms_change(struct event_terms *terms, unsigned given, const struct event_terms *from);
/* When sales close: at the start, unless the terms say otherwise; 0: never. */
int64_t event_terms_sales_end(const struct event_terms *terms);
/* What is wrong with the terms as a whole, as a sentence that begins with a field; NULL: nothing. */
const char *event_terms_conflict(const struct event_terms *terms);
/* The index of the type of that id; -1 if there is none. */
int event_terms_type(const struct event_terms *terms, const char *id, size_t len);
/* What a place of that type costs now; `index` is that of its category or area in terms->prices. */
int64_t event_terms_price(const struct event_terms *terms, size_t index, uint32_t type);
/* Changes the type of the id in `change`, or adds it behind the others.  Returns false if there is
 * no room for another. */
bool event_terms_put_type(struct event_terms *terms, const struct ticket_type *change);
void ticket_type_close(struct ticket_type *type);
/* The number of the channel of that name; 0 if there is none. */
uint32_t event_terms_channel(const struct event_terms *terms, const char *name, size_t len);

/* The layout, as the event's creator described it. */
struct row_def {
    char *name;
    char *extra; /* further members of the row in the plan, as JSON; NULL: none */
    uint32_t seats;
    uint32_t first; /* index of seat 1 of this row; set by event_def_number */
    bool listed;    /* its seats are not those that counting makes; set by venue_find_listed */
};
struct section_def {
    char *name, *tier; /* tier may be NULL */
    char *extra;       /* further members of the zone in the plan, as JSON; NULL: none */
    bool listed;       /* rows were listed by name, so answers list them too */
    int16_t category;  /* of seats that name none, where the event has categories of its own; -1:
                          there is none, each seat has its own */
    VEC(struct row_def) rows;
};
struct area_def {
    char *name;
    char *plan_area; /* the uuid of the plan's area that shows it; NULL: none */
    int64_t capacity;
};
/* What a seat costs, by the prices in the terms, and how it is drawn. */
struct category_def {
    char *name;
    char *color;     /* as the creator wrote it; NULL: none */
    bool of_section; /* it is the price of the section of the same name */
};
struct event_def {
    struct id id; /* the event's; set by the worker at creation, or read from the ledger */
    char currency[4];
    enum event_status status; /* at creation, or when it was read */
    struct event_terms terms; /* at creation, or when they were read */
    int64_t created_at;
    uint32_t n_seats;
    VEC(struct category_def) categories; /* empty: each section is one */
    VEC(struct section_def) sections;
    VEC(struct area_def) areas;
    struct venue *venue; /* NULL: its rows are counted */
    struct buf packed;   /* of a new event: what venue_pack made of it, to be stored */
};
/* How many categories the event has: as many prices come before those of areas. */
size_t event_def_categories(const struct event_def *def);
const char *event_def_category_name(const struct event_def *def, size_t category);
/* May an entry of the event's waiting list have this wish? */
bool event_def_has_wish(const struct event_def *def, const struct wait_wish *wish);
/* The section's own category, whose price is the section's; -1: it has none. */
int64_t event_def_section_category(const struct event_def *def, size_t section);
/* The name of the row with this index in a section whose creator named no rows: A..Z, AA..ZZ, AAA..
 */
#define ROW_NAME_SIZE 8
void row_name(uint32_t index, char out[ROW_NAME_SIZE]);
/* Numbers the seats: fills in row_def.first and n_seats.  Returns false if there are more than
 * EVENT_SEATS_MAX. */
bool event_def_number(struct event_def *def);
/* How many seats and area places there are. */
int64_t event_def_capacity(const struct event_def *def);
void event_def_free(struct event_def *def); /* accepts NULL; frees the strings, too */

/* How many seats and area places of an event have each status, at one seq.  Together they are its
 * capacity. */
struct event_counts {
    int64_t seq, available, held, booked, blocked;
};
/* An event in a list. */
struct event_summary {
    struct event_def *def; /* without sections and areas */
    struct event_counts counts;
};

/* ---- holds and bookings ---- */

/* Places of general admission. */
struct area_claim {
    uint32_t area, quantity;
};
/* `n` places of a hold, one after another, that are of the same type and cost the same.  The places
 * of a hold are its seats and then those of its areas, in the order in which it lists them. */
struct price_run {
    int64_t price;
    uint32_t n;
    uint32_t type; /* index in event_terms.types; 0 also where the event has none */
};
/* Where a list of runs is being read, place by place. */
struct price_reader {
    const struct price_run *run, *end;
    uint32_t used; /* places of `run` that have been read */
};
static inline struct price_reader price_reader(const struct price_run *runs, uint32_t n)
{
    return (struct price_reader){.run = runs, .end = n ? runs + n : runs};
}
/* Passes on up to `n` places of the same type and price; returns how many, 0 at the end.  Then
 * *ret_price and *ret_type are untouched. */
uint32_t price_reader_next(struct price_reader *r, uint32_t n, int64_t *ret_price,
                           uint32_t *ret_type);

/* The hold that has taken over the places of another one, since both were booked together. */
struct hold_carrier {
    struct id id; /* key 0: none */
    int64_t expires_at;
    enum hold_status status;
};

struct hold_row {
    struct id id;
    int64_t event, fence, amount, created_at, expires_at, max_expires_at;
    int64_t last_seq; /* of its last row in the log */
    uint64_t client;  /* of a keyless buyer's address, see base/client_number.h; 0: none */
    uint32_t channel; /* the channel of its event whose blocked places it may have; 0: none.  The
                         places of its areas are all of that channel */
    int64_t wait;     /* of a new hold: the entry of the waiting list that it is offered to, whose
                         owner and metadata it gets when it is stored; 0: none */
    uint64_t owner_number; /* of a new hold with `wait`: owner_hash() of that owner */
    enum hold_status status;
    enum booking_status booking; /* of the booking that was made of it, or of its carrier; only some
                                    reads tell it */
    uint8_t booking_secret[ID_SECRET_SIZE]; /* likewise */
    struct hold_carrier carrier;            /* likewise; the hold itself is released then */
    const char *owner;                      /* NULL: none */
    size_t owner_len;
    const char *metadata; /* JSON text, NULL: none */
    size_t metadata_len;
    const uint32_t *seats;
    const struct area_claim *areas;
    const struct price_run *prices; /* of all its places; none if schema 4 stored it */
    uint32_t n_seats, n_areas, n_prices;
    void *owned; /* what hold_row_close frees; NULL when the pointers are borrowed */
};
void hold_row_close(struct hold_row *row);
/* How many places of the area are listed. */
uint32_t area_claim_of(const struct area_claim *areas, uint32_t n, uint32_t area);
/* How many seats and area places there are together, as max_per_hold counts them. */
uint32_t places_count(uint32_t n_seats, const struct area_claim *areas, uint32_t n_areas);

struct booking_row {
    struct id id; /* key: the hold's */
    uint8_t hold_secret[ID_SECRET_SIZE];
    int64_t event, fence, amount, created_at;
    int64_t cancelled_at; /* 0: it is not cancelled */
    enum booking_status status;
    const char *reference; /* NULL: none */
    size_t reference_len;
    const char *reason; /* why it was cancelled; NULL: nobody said */
    size_t reason_len;
    const char *owner; /* of its hold; NULL: none */
    size_t owner_len;
    const char *email; /* of the buyer, for the provider's receipt; NULL: none */
    size_t email_len;
    int64_t payment;    /* the number of its payment; 0: it needs none */
    int64_t number;     /* the order number, which is no secret; 0: made before there were any */
    int64_t expires_at; /* of its hold */
    const uint32_t *seats;
    const struct area_claim *areas;
    const struct price_run *prices; /* of its hold */
    const struct id *merged; /* the other holds that were booked with its own, ascending by key */
    uint32_t n_seats, n_areas, n_prices, n_merged;
    void *owned;
};
void booking_row_close(struct booking_row *row);

/* ---- what a batch writes ---- */

/* The status in a seat's own row, or SEAT_AVAILABLE if it has none.  A seat that was blocked for a
 * channel keeps its row while a hold of that channel has it, and is blocked again when the hold
 * ends: so such a hold, too, touches no row of a seat. */
static inline enum seat_status seat_row_status(enum seat_status status, uint32_t channel)
{
    if (status == SEAT_HELD)
        return channel ? SEAT_BLOCKED : SEAT_AVAILABLE;
    return status;
}
/* The net change of one seat in a batch.  Its row is replaced only if `row_changes`; the row before
 * the batch is then the condition. */
struct seat_write {
    int64_t seat, hold_before, hold, expires_at;
    int64_t row_fence; /* of the last change that its row shows */
    int64_t head;      /* the seq of its last row in the log */
    enum seat_status from, to;
    uint8_t channel_before, channel; /* 0: none */
    bool row_changes;
};
/* How many places of an area are blocked for one channel (0: for none). */
struct area_block {
    uint32_t channel, places;
};
struct area_blocks {
    VEC(struct area_block) list; /* ascending by channel, places above 0 */
};
/* The net change of an area's counters.  The counters before the batch are the condition. */
struct area_write {
    int64_t event, area, held_before, booked_before, held, booked;
    struct area_blocks blocks_before; /* owned: vec_close */
    const struct area_blocks *blocks; /* the view's */
};
/* The net change of an event's status and terms. */
struct event_write {
    int64_t event;
    enum event_status from, to;
    const struct event_terms *terms; /* NULL: they stay as they are */
    size_t n_categories;             /* the first n_categories prices are those of categories */
    bool by_section;                 /* each section is a category */
};
/* The net change of one hold. */
struct hold_write {
    int64_t hold, fence_before, fence, expires_before, expires_at, seq_before, last_seq;
    int64_t payment_before; /* see struct hold; for decision_undo */
    enum hold_status from, to;
};
/* Other places, prices and amount of a hold, which has `fence` by then. */
struct hold_places_write {
    int64_t hold, fence, amount;
    const uint32_t *seats;
    const struct area_claim *areas;
    const struct price_run *prices;
    uint32_t n_seats, n_areas, n_prices;
};
/* Another hold has taken over the places of a hold, or of the hold that had taken them before. */
struct hold_merge {
    int64_t hold, carrier;
    int64_t carrier_before; /* 0: none */
};
/* A booking that is confirmed, fails or is cancelled. */
struct booking_write {
    int64_t booking, cancelled_at;
    int64_t fence; /* that its hold was sold with; 0: it was not */
    enum booking_status from, to;
    const char *reason; /* NULL: none */
    size_t reason_len;
};
struct sale_write {
    int64_t seat, booking;
};
/* A payment as it is after the batch; it is stored only if its status was `from`. */
struct payment_write {
    struct payment_row row;
    enum payment_status from;
};
struct refund_write {
    struct refund_row row;
    enum refund_status from;
    bool is_dropped; /* the row is deleted: others have given that money back */
};
/* What becomes of a stored job.  JOB_OWED: it is run again at due_at. */
struct job_write {
    struct job_row row;
    bool is_deleted;
};
/* A webhook that arrived, and the payment that it is about. */
struct webhook_write {
    struct payment_event event;
    int64_t booking, payment; /* 0: not known here */
    char intent[PROVIDER_ID_SIZE];
    bool is_parked; /* it is about a payment of ours that the ledger does not have */
    int64_t at;
};
struct audit_row {
    int64_t event, seq, at;
    enum audit_object object;
    enum audit_cause cause;
    int64_t item;     /* seat or area index; -1: none */
    int64_t quantity; /* 0: none */
    int from, to;     /* values of the object's own status enum */
    uint32_t channel; /* of the places, where they pass to or from SEAT_BLOCKED; 0: none */
    uint32_t type; /* of the places, where they pass to a hold or a booking, or a change of the hold
                      gives them back; see price_run */
    /* 0: none.  Of an entry of the waiting list: the hold that it was offered, 0, the fence that it
     * drew, and when that hold expires; of a new entry, its number. */
    int64_t hold, booking, fence, until;
    int64_t prev; /* the seq of the row before about the same seat, or the same hold; a booking that
                     is cancelled counts as a row about its hold.  0: none */
    /* Who made the change, of a row that is to be stored; borrowed until then.  NULL in rows that
     * were read: only struct audit_entry has it. */
    const char *actor;
};
/* A row of the log as it is shown to clients: with the secrets of the ids it names, and with its
 * actor; "": not known, since a version before schema 8 wrote the row. */
struct audit_entry {
    struct audit_row row;
    uint8_t hold_secret[ID_SECRET_SIZE], booking_secret[ID_SECRET_SIZE];
    char actor[ACTOR_SIZE];
};
/* What other servers wrote after the seqs and fences that a view has: rows of the log ordered by
 * event and seq, and holds ordered by key: new ones that are live or confirmed, and others whose
 * owners catch_up has to know.  And new entries of waiting lists that are live, ordered by key. */
struct log_since {
    VEC(struct audit_row) audit;
    VEC(struct hold_row) holds;
    VEC(struct wait_row) waits;
};
/* The heads of HEADS_CHUNK seats, beginning with `first`, as they were at `seq`. */
#define HEADS_CHUNK 4096
#define HEADS_EVERY 1024 /* rows of the log */
#define HEAD_SIZE 5      /* bytes of a stored head, the lowest first */
struct heads_write {
    int64_t event, seq;
    uint32_t first, n; /* heads of the seats behind these `n` are 0 */
    const uint8_t *heads;
};
static inline void head_pack(uint8_t out[HEAD_SIZE], int64_t seq)
{
    for (int i = 0; i < HEAD_SIZE; i++)
        out[i] = (uint8_t)(seq >> 8 * i);
}
static inline int64_t head_unpack(const uint8_t in[HEAD_SIZE])
{
    int64_t seq = 0;
    for (int i = 0; i < HEAD_SIZE; i++)
        seq |= (int64_t)in[i] << 8 * i;
    return seq;
}
#define KEY_HASH_SIZE 32
/* The answer that is stored under an idempotency key.  Only src/api gives its number and its bytes
 * a meaning: the ledger stores them, and a repeated request gets them back unread. */
struct key_row {
    bool found;                     /* the ledger has this row; set by reads alone */
    uint8_t hash[KEY_HASH_SIZE];    /* of caller scope and key */
    uint8_t request[KEY_HASH_SIZE]; /* of method, path and body */
    int answer_code;
    const char *answer;
    size_t answer_len;
    int64_t created_at;
    int64_t hold; /* the hold that the answer is about; 0: none */
    void *owned;  /* what key_row_close frees; NULL when `answer` is borrowed */
};
void key_row_close(struct key_row *row);

/* The lock and the counters of an event. */
struct clock_row {
    int64_t event, seq, fence, now;
};
struct clock_write {
    struct clock_row before, after;
};

struct ledger_batch {
    VEC(struct clock_write) clocks;
    VEC(struct event_write) events;
    VEC(struct seat_write) seats;
    VEC(struct area_write) areas;
    VEC(struct hold_row) holds_new;
    VEC(struct hold_write) holds;
    VEC(struct hold_places_write) places;
    VEC(struct hold_merge) merges;
    VEC(struct wait_row) waits_new;
    VEC(struct wait_write) waits;
    VEC(struct booking_row) bookings_new;
    VEC(struct booking_write) bookings;
    VEC(struct sale_write) sales;
    VEC(struct sale_write) sales_undone;
    VEC(int64_t) bookings_past; /* failed ones, which new bookings of the same holds replace */
    VEC(struct payment_row) payments_new;
    VEC(struct payment_write) payments;
    VEC(struct refund_row) refunds_new;
    VEC(struct refund_write) refunds;
    VEC(struct job_row) jobs_put; /* new, or in the place of a job of the same number */
    VEC(struct job_write) jobs;
    VEC(struct webhook_write) webhooks;
    VEC(struct audit_row) audit;
    VEC(struct heads_write) heads;
    VEC(struct key_row) keys;
};

#endif
