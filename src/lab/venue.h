/* Where a race takes place: the servers, throwaway or named, and the lab's own corner of them.
 * Main thread only. */
#ifndef HF_LAB_VENUE_H
#define HF_LAB_VENUE_H

#include "lab/machine.h"
#include "lab/servers.h"
#include "lab/strategy.h"

#define VENUE_URL_SIZE 768

struct venue {
    struct servers servers;
    struct strategy_settings settings; /* points into here: not to be copied */
    struct versions versions;
    bool on_postgres;     /* else SQLite */
    char note[256];       /* why another place than asked for; "": none */
    const char *postgres; /* the URL without our schema; NULL: none */
    bool named_postgres, named_gate, named_sqlite;
    char schema[32];
    char field_url[VENUE_URL_SIZE], holdfastd_url[VENUE_URL_SIZE]; /* ledgers of the two */
    char sqlite[VENUE_URL_SIZE];
};

/* As race_settings says of them.  `say` is told what is about to be started, and may refuse it
 * (HF_DRAINING).  To be closed on failure too. */
HF_MUST_USE enum hf_status venue_open(struct venue *v, const char *ledger, const char *gate,
                                      bool (*say)(void *ctx, const char *what), void *ctx,
                                      struct hf_err *err);
/* A holdfastd on the venue's ledger and gate; its URL is settings.server. */
HF_MUST_USE enum hf_status venue_start_holdfastd(struct venue *v, struct hf_err *err);
void venue_close(struct venue *v);

#endif
