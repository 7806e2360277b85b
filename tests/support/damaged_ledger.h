/* Ledgers that a test damages by SQL, and what `holdfast verify` says of them. */
#ifndef HF_TESTS_SUPPORT_DAMAGED_LEDGER_H
#define HF_TESTS_SUPPORT_DAMAGED_LEDGER_H

#include "ledger/verify.h"
#include "model/rows.h"

struct damage {
    const char *claim;
    enum verify_id id;    /* a check that fails */
    const char *violated; /* the invariants of all that fail, such as "I1 I3" */
    const char *sql;
};

/* A directory with a sound ledger and a damaged copy of it. */
struct damaged_ledger {
    char dir[64], good[96], copy[96], url[128]; /* `url` is that of `good` */
};
void damaged_ledger_init(struct damaged_ledger *l);
void damaged_ledger_close(struct damaged_ledger *l);

/* Copies the sound ledger and runs the SQL on the copy.  In it seat:1.4 stands for the key of seat
 * 4 of event 1, and hold:1.3 for that of the hold with fence 3. */
void damaged_ledger_damage(const struct damaged_ledger *l, const char *sql);
/* Fails the test if the file cannot be verified. */
void damaged_ledger_verify(const char *path, struct verify_report *ret);
/* Fails the test unless the report is without violations. */
void damaged_ledger_is_sound(const char *path, struct verify_report *ret);
/* Makes the damage, and fails the test unless verify names exactly what it breaks. */
void damaged_ledger_is_named(const struct damaged_ledger *l, const struct damage *d);

#endif
