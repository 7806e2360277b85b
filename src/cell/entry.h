/* The bytes of one entry of the journal: a head and a batch of commands.
 *
 *   head      version, epoch, entry id, digest of the chain up to the entry before
 *   commands  one after the other; texts and numbers with their lengths
 *
 * The chain: digest(n) = SHA-256(digest(n - 1), bytes of entry n).  A server whose chain differs
 * from the head of the next entry has read another history and reloads.  An entry without commands
 * is a heartbeat, or the proof of mastership that keep-alives and reads wait for.  Pure functions;
 * the reader accepts any bytes. */
#ifndef HF_CELL_ENTRY_H
#define HF_CELL_ENTRY_H

#include "base/buf.h"
#include "base/status.h"
#include "cell/command.h"
#include "cell/state.h"

#define CELL_ENTRY_MAX ((size_t)256 * 1024) /* an entry is never longer */
#define CELL_ENTRY_ID_SIZE 16
/* A command is at most this long in an entry, CELL_RESIGN excepted. */
#define CELL_COMMAND_MAX ((size_t)6 * 1024)

struct entry_head {
    int64_t epoch;
    uint8_t id[CELL_ENTRY_ID_SIZE];
    uint8_t previous[CELL_DIGEST_SIZE];
};

/* Appends a head; commands follow. */
void entry_put_head(struct buf *out, const struct entry_head *head);
void entry_put(struct buf *out, const struct cell_command *c);
/* As many of these as fit into an entry go into one CELL_RESIGN. */
#define CELL_TTLS_MAX 10000

/* Reads an entry: entry_open, then entry_next until it returns false; err->code is HF_OK at the
 * end, and otherwise err says what is wrong.  Texts point into `data`. */
struct entry_reader {
    const uint8_t *at, *end;
    VEC(struct cell_ttl) ttls; /* of the current command */
};
HF_MUST_USE bool entry_open(struct entry_reader *r, const void *data, size_t len,
                            struct entry_head *ret, struct hf_err *err);
HF_MUST_USE bool entry_next(struct entry_reader *r, struct cell_command *ret, struct hf_err *err);
void entry_close(struct entry_reader *r);

void entry_chain(const uint8_t previous[CELL_DIGEST_SIZE], const void *data, size_t len,
                 uint8_t ret[CELL_DIGEST_SIZE]);

#endif
