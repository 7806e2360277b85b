/* The back ends of a race: servers that the user named or that the lab started for itself, and the
 * schemas, files and keys that the lab uses on them.  Main thread only. */
#ifndef HF_LAB_VENUE_H
#define HF_LAB_VENUE_H

#include "lab/machine.h"
#include "lab/servers.h"
#include "lab/strategy.h"

#define VENUE_URL_SIZE 768

struct lab_venue {
    struct servers servers;
    struct strategy_settings settings; /* points into this struct, which must not be copied */
    struct versions versions;
    bool on_postgres;                              /* false: on SQLite */
    char note[256];                                /* as race_result.note */
    bool named_postgres, named_gate, named_sqlite; /* by the user, not started by us */
    const char *postgres;                          /* its URL without a schema; NULL if none */
    char schema[32];                               /* the start of our schemas' names */
    char field_url[VENUE_URL_SIZE];                /* where the strategies sell */
    char holdfastd_url[VENUE_URL_SIZE];            /* the ledger of our holdfastd */
    char sqlite[VENUE_URL_SIZE];                   /* a path */
};

/* `ledger` and `gate` are those of race_settings.  `say` is called before a server is started, with
 * words for the user; if it returns false, nothing more is started (HF_DRAINING).  The caller
 * closes the venue also after a failure. */
HF_MUST_USE enum hf_status venue_open(struct lab_venue *v, const char *ledger, const char *gate,
                                      bool (*say)(void *ctx, const char *what), void *ctx,
                                      struct hf_err *err);
/* Starts a holdfastd on the venue's ledger and gate; its URL is settings.server afterwards. */
HF_MUST_USE enum hf_status venue_start_holdfastd(struct lab_venue *v, struct hf_err *err);
void venue_close(struct lab_venue *v);

#endif
