/* The integer keys of the ledger's rows:
 *
 * - event: 1, 2, 3 ...
 * - seat: event << 32 | index of the seat in its event
 * - hold: event << 40 | the fence that the hold was granted with.  So a hold's id names its event,
 *   and no counter beside event_clock is needed.
 * - booking: the key of the hold that it sells
 * - payment, refund, job: event << 40 | a fence (payment.h)
 * - log: event << 40 | the seq of its first change
 * - heads of seats: event << 32 | the first of HEADS_CHUNK seats */
#ifndef HF_MODEL_KEYS_H
#define HF_MODEL_KEYS_H

#include <stdint.h>

#define SEAT_KEY(event, index) ((int64_t)(event) << 32 | (int64_t)(index))
#define SEAT_EVENT(key) ((int64_t)(key) >> 32)
#define SEAT_INDEX(key) ((uint32_t)((key)&0xffffffff))
#define HOLD_FENCE_BITS 40
#define HOLD_KEY(event, fence) ((int64_t)(event) << HOLD_FENCE_BITS | (int64_t)(fence))
#define HOLD_EVENT(key) ((int64_t)(key) >> HOLD_FENCE_BITS)
#define HOLD_FIRST_FENCE(key) ((int64_t)(key) & (((int64_t)1 << HOLD_FENCE_BITS) - 1))
#define AUDIT_SEQ_BITS 40
#define SEQ_MAX (((int64_t)1 << AUDIT_SEQ_BITS) - 1)
#define AUDIT_KEY(event, seq) ((int64_t)(event) << AUDIT_SEQ_BITS | (int64_t)(seq))
#define EVENT_KEY_MAX (((int64_t)1 << (62 - HOLD_FENCE_BITS)) - 1)

#endif
