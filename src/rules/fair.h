/* Was anybody on a waiting list passed over?  Replays the log of one event, row by row, and judges
 * it by I17: a place that becomes free goes, in the same commit, to the entry with the smallest rank
 * whose wish fits, and nobody else gets it.
 *
 * Four things are unfair:
 *   TAKEN   a hold, a change of one, a rescue or a block took free places although what was free
 *           just before it fitted an entry
 *   ORDER   an entry was offered a hold although another one, with a smaller rank, fitted
 *   IDLE    at the end of a commit something was free that fitted an entry
 *   TWICE   an entry was offered a hold although it had been offered one before
 *
 * Whether a wish fits is asked of decide_wish_fits, as the rules do.  Queues and ranks are kept
 * anew here, and every wish is tried after every place that became free, so that a mistake of
 * view/waitlist.h is found and not repeated.
 *
 * What the log tells by its rows: places, entries, the event's status, pauses.  A hold that is due
 * has its places until its row says otherwise.  Rows of one time are taken as one commit.  While
 * holds are booked as one, what the others give to the carrier is not free.
 *
 * What it does not tell, and how doubt is settled for the accused:
 *   - wishes: fair_wish; an entry without one is not looked at
 *   - when sales are open, and whether there is a list: fair_terms.  Where the terms are not known,
 *     only those claims and commits are judged that show by themselves that the list offers: holds
 *     of buyers, since sales were open then, and commits that made an offer
 *   - how many turns a batch had left: one that took f->turns_max of them owes nothing, nor one
 *     that changed the terms, since owners may have to be counted first.  If batches have commands
 *     of several events, or were cut short for another reason, set f->idle_ms
 *
 * Pure; owned by one thread.  24 bytes per seat and about 150 per entry.  A row costs O(log entries),
 * a claim also a search for each wish that was not tried since a place became free. */
#ifndef HF_RULES_FAIR_H
#define HF_RULES_FAIR_H

#include "base/heap.h"
#include "base/table.h"
#include "view/view.h"

enum unfair_kind { UNFAIR_TAKEN, UNFAIR_ORDER, UNFAIR_IDLE, UNFAIR_TWICE, UNFAIR_KINDS };
struct unfair {
    enum unfair_kind kind;
    int64_t seq;   /* of the row that shows it, or that ends the commit */
    int64_t entry; /* that was passed over; TWICE: that was offered again */
    int64_t hold;  /* that has the places; 0: they were blocked, or are idle */
    int64_t other; /* ORDER: the entry that was offered the hold */
};
#define UNFAIR_LISTED 16

struct fair_queue;
struct fair_entry;
struct fair_terms {
    int64_t seq;
    struct event_terms terms;
};

struct fair {
    /* To be set by the caller before the first row. */
    int64_t judged_after; /* rows up to this seq are replayed, and not judged */
    uint32_t turns_max;   /* of a batch; fair_new: WAIT_TURNS_MAX */
    int64_t idle_ms;      /* a place may be idle for so long before it counts; fair_new: 0 */

    /* For the caller to read. */
    int64_t judged; /* claims, offers, and ends of commits while somebody waited */
    int64_t n;      /* violations, of which the first are listed */
    struct unfair list[UNFAIR_LISTED];

    /* Of fair.c. */
    struct event *event;              /* places and status, as replayed */
    struct table entries, queues;     /* of those whose wishes are known */
    VEC(struct fair_queue *) untried; /* queues whose wish may fit */
    bool frees;                       /* a place has become free: all queues are untried */
    uint32_t n_waiting;
    VEC(struct fair_terms) terms; /* that the caller knows, ascending by seq */
    size_t n_terms;               /* how many of them the replay has reached */
    int64_t seq, at;              /* of the last row */
    int64_t changed_seq;          /* of the last row that changed terms */
    bool paused;
    bool is_partial;            /* the commit may have begun before the first row */
    struct fair_undone *undone; /* until fair_begin */
    /* Where the terms are not known: */
    bool is_off;       /* entries have ended because there is no list any more */
    bool may_be_off;   /* they may be about to */
    int64_t offers_at; /* when the list was seen to offer */
    /* Of the commit: */
    uint32_t turns;
    bool has_terms;         /* it changed terms */
    VEC(uint32_t) moving;   /* seats on their way to the hold that is booked for all */
    int64_t *moving_places; /* of each area, likewise */
    /* Of the claim, offer or change of a hold whose rows are being read: */
    int64_t fence;   /* that it drew */
    int64_t entry;   /* that fitted before a change or an offer; 0: none, or it was named */
    int64_t offered; /* the hold that is offered */
    int64_t idle;    /* the entry that was last found beside an idle place; 0: none */
};

/* Begins with an event of which no row has been logged: all of its places are free.  Takes over
 * `def` (numbered); def->status is that of the beginning. */
void fair_init(struct fair *f, struct event_def *def);
void fair_close(struct fair *f); /* accepts a zeroed struct */

/* Begins within the log, in these steps: fair_load with the event as its last row has left it, which
 * is taken over; fair_entry with every entry; fair_undo with every row behind a seq, in ascending
 * order; fair_begin with that seq.  Then these rows are replayed.  The commit that they begin with
 * may have begun before them, and is not judged. */
void fair_load(struct fair *f, struct event *e);
void fair_entry(struct fair *f, const struct wait_row *row);
void fair_undo(struct fair *f, const struct audit_row *row);
void fair_begin(struct fair *f, int64_t seq);

/* Tells what an entry wants, before its first row is replayed. */
void fair_wish(struct fair *f, int64_t entry, const struct wait_wish *wish);
/* Tells the terms that the event had after the row `seq`, until the next row that changes them; 0:
 * from the beginning.  The terms are copied.  In ascending order, before the row that follows. */
void fair_terms(struct fair *f, const struct event_terms *terms, int64_t seq);
/* Replays the next row. */
void fair_row(struct fair *f, const struct audit_row *row);
/* The log ends here, at the time `now`: judges the last commit.  More rows may follow later, of
 * later commits. */
void fair_end(struct fair *f, int64_t now);
/* The words for a kind, such as "places were taken that fitted an entry". */
const char *unfair_text(enum unfair_kind kind);

#endif
