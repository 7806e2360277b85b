/* How the log is stored.  A stored row, an entry, is one transition of a hold with all of its
 * places: its consecutive rows of the log (struct audit_row), which differ in little.
 *
 *     the hold, its booking if the transition makes one, its seats, its areas
 *
 * Its key is that of the first of them, and the others have the seqs that follow.  A change without
 * a hold, such as blocking seats, begins with the first of its places (object 0).  So does each row
 * that a ledger had before schema version 4: those are entries of one row.
 *
 *   seats   [status before, status after, seat, prev, seat, prev ...]
 *   areas   [status before, status after, area, quantity, area, quantity ...]
 *   types   [type, type ...] of each of these places, where they pass to a hold or a booking, or a
 *           change of the hold gives them back; NULL: all are of the first ticket type.  An area
 *           has one place in the list for each type.
 *
 * `prev` is the seq of the row before about that seat, 0 if there is none; the column `prev` is the
 * same for the hold.  What the places do not say follows from the entry: they have its time, cause,
 * hold and fence, a held place has its `until`, a booked place its hold's booking, and a place that
 * passes to or from blocked its `channel`.  All have its `actor`, which is NULL in entries that
 * a version before schema 8 wrote.  A change of a hold that takes and gives back places is
 * several entries, one for each kind of passage.
 * Internal to src/ledger. */
#ifndef HF_LEDGER_LOG_H
#define HF_LEDGER_LOG_H

#include "ledger/ledger_internal.h"

/* Returns how many of the `n` rows, at least one, make one entry. */
size_t log_entry_len(const struct audit_row *rows, size_t n);
/* Bytes of text that the places of `n` rows take at most. */
size_t log_text_max(size_t n);
/* Appends the columns of LOG_INSERT to l->args.  l->text has room for the entry's lists. */
void log_put(struct ledger *l, const struct audit_row *rows, size_t n);

struct log_rows {
    VEC(struct audit_row) list;
};
/* Appends the rows of the entry that LOG_SELECTED shows.  Returns false if it is damaged. */
bool log_expand(struct db_stmt *stmt, struct log_rows *out);

/* The numbers of a list of seats or areas. */
struct log_list {
    const char *at, *end;
    int from, to;
};
/* Begins to read a column.  Returns false if it is damaged; SQL NULL is an empty list. */
bool log_list_open(struct db_stmt *stmt, int column, struct log_list *ret);
/* Reads the next pair.  Returns false at the end of the list, where `at` is `end`, and if the list
 * is damaged, where it is not. */
bool log_list_next(struct log_list *list, int64_t *ret_item, int64_t *ret_value);

/* The seq of the first seat of an entry. */
static inline int64_t log_seats_seq(int64_t entry, int64_t object, int64_t booking)
{
    int64_t seq = entry & (((int64_t)1 << AUDIT_SEQ_BITS) - 1);
    return seq + (object != 0) + (object == AUDIT_HOLD && booking);
}

#endif
