/* Reads where the chain of each seat ends: stored heads, and the log after them (see rows.h).  Any
 * connection. */
#include <stdlib.h>

#include "ledger/log.h"

struct heads {
    int64_t event;
    uint32_t n_chunks;
    int64_t *seqs; /* of each chunk: its row knows the log up to here; 0: it has no row */
    void (*head)(void *ctx, uint32_t seat, int64_t seq);
    void *ctx;
};

static enum hf_status read_stored(struct ledger *l, const struct heads *h, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(SEAT_KEY(h->event, 0)),
                                    db_int(SEAT_KEY(h->event, UINT32_MAX))};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_HEADS_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        size_t len;
        uint32_t first = SEAT_INDEX(db_column_int(stmt, 0));
        const uint8_t *heads = db_column_data(stmt, 2, &len);
        if (first % HEADS_CHUNK || first / HEADS_CHUNK >= h->n_chunks ||
            len > (size_t)HEADS_CHUNK * HEAD_SIZE)
            continue; /* a damaged row; the log is read in its place */
        h->seqs[first / HEADS_CHUNK] = db_column_int(stmt, 1);
        for (uint32_t i = 0; i < len / HEAD_SIZE; i++)
            if (head_unpack(heads + (size_t)i * HEAD_SIZE))
                h->head(h->ctx, first + i, head_unpack(heads + (size_t)i * HEAD_SIZE));
    }
    return status;
}

/* Returns false if the list of seats is damaged. */
static bool read_entry(struct db_stmt *stmt, const struct heads *h)
{
    struct log_list list;
    int64_t seq =
        log_seats_seq(db_column_int(stmt, 0), db_column_int(stmt, 1), db_column_int(stmt, 2));
    int64_t seat, prev;
    if (!log_list_open(stmt, 3, &list))
        return false;
    for (; log_list_next(&list, &seat, &prev); seq++) {
        uint64_t chunk = (uint64_t)seat / HEADS_CHUNK;
        if (chunk < h->n_chunks && seq > h->seqs[chunk])
            h->head(h->ctx, (uint32_t)seat, seq);
    }
    return list.at == list.end;
}

static enum hf_status read_log(struct ledger *l, const struct heads *h, int64_t after,
                               struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(AUDIT_KEY(h->event, after)),
                                    db_int(AUDIT_KEY(h->event + 1, 0) - 1)};
    bool is_row, is_sound = true;
    enum hf_status status = ledger_query(l, ST_LOG_SEATS, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        is_sound &= read_entry(stmt, h);
    if (status == HF_OK && !is_sound)
        status =
            hf_err_set(err, HF_INTERNAL, "the log of event %lld is damaged", (long long)h->event);
    return status;
}

enum hf_status ledger_heads_read(struct ledger *l, int64_t event, uint32_t n_seats,
                                 void (*head)(void *ctx, uint32_t seat, int64_t seq), void *ctx,
                                 int64_t *ret_seq, struct hf_err *err)
{
    struct heads h = {.event = event,
                      .n_chunks = (n_seats + HEADS_CHUNK - 1) / HEADS_CHUNK,
                      .head = head,
                      .ctx = ctx};
    h.seqs = hf_alloc((h.n_chunks + 1) * sizeof *h.seqs);
    int64_t after = INT64_MAX;
    enum hf_status status = read_stored(l, &h, err);
    for (uint32_t i = 0; i < h.n_chunks; i++)
        after = h.seqs[i] < after ? h.seqs[i] : after;
    if (status == HF_OK && h.n_chunks)
        status = read_log(l, &h, after, err);
    free(h.seqs);
    if (status == HF_OK)
        *ret_seq = h.n_chunks ? after : 0;
    return status;
}
