/* The limits of the domain; docs/openapi.yaml states them to clients. */
#ifndef HF_MODEL_LIMITS_H
#define HF_MODEL_LIMITS_H

#include <stdint.h>

#define EVENT_SEATS_MAX 2000000
#define NAME_CHARS_MAX 32 /* of sections, rows and areas */
#define NAME_SIZE (NAME_CHARS_MAX * 4 + 1)
#define HOLD_PLACES_MAX 500 /* the largest max_per_hold an event may have */
#define HOLD_TTL_MS_MIN 1000
#define HOLD_TTL_MS_MAX 86400000
#define PRICE_MAX INT64_C(1000000000000) /* of a seat or a place */
#define CATEGORIES_MAX 250               /* of an event; their numbers fit in a byte */
#define PLAN_TEXT_CHARS_MAX 255          /* of each name, id and label in a seating plan */
#define MAX_PER_OWNER_MAX 1000000
#define ORDER_NUMBER_MAX ((int64_t)1 << 60) /* 12 characters of five bits */
#define BOOKINGS_PER_HOLD_MAX 20 /* attempts to pay for one hold that failed, and one more */
#define HOLDS_PER_BOOKING_MAX 10 /* that one request may book together */
#define CHANNELS_MAX 100         /* of an event; their numbers fit in a byte */
#define TYPES_MAX 16             /* ticket types of an event */
#define TYPES_TOO_MANY "types must have at most 16 entries"
#define TYPE_ID_LEN_MAX 32
#define TYPE_NAME_CHARS_MAX 100

#define OFFER_TTL_MS_MIN 1000
#define OFFER_TTL_MS_SHORT 120000 /* the end of sales does not make an offer shorter than this */
#define WAIT_ALIVE_MS_MIN 60000
#define WAIT_ALIVE_MS_MAX ((int64_t)366 * 86400000)
#define WAIT_PER_OWNER_MAX 100
#define WAIT_METADATA_LEN_MAX 1024

/* How long the answer to a request with an idempotency key is kept. */
#define KEY_KEPT_MS ((int64_t)24 * 3600 * 1000)

/* The longest pages of lists. */
#define EVENTS_LIST_MAX 100
#define HOLDS_LIST_MAX 100
#define BOOKINGS_LIST_MAX 100
#define REFUNDS_LIST_MAX 100
#define NOTICES_LIST_MAX 100
#define WAITS_LIST_MAX 100
#define AUDIT_LIST_MAX 1000
#define SEAT_HISTORY_MAX 100
#define HEAT_LIST_MAX 10000

#endif
