/* See journal_sql.h.  Tables:
 *
 *   head      one row: epoch, claim and URL of the master; the newest snapshot, of how many chunks
 *             it is, and the one before (0: none)
 *   entries   idx, id, data.  The last entry is never trimmed, so that MAX(idx) is the last index
 *   chunks    idx, part, data.  Chunks below the newest snapshot that are not those of the one
 *             before belong to nobody, whatever the epoch is
 *   servers   the reports
 *
 * Every write is one statement and one transaction, sent in one exchange where the database is in a
 * network, so nothing is locked between two calls.  What makes it safe there:
 *
 *   - `append` and `put_chunk` take their row from `head`, locked FOR SHARE, if epoch and claim are
 *     theirs; `claim` updates that row.  So a claim waits for appends that have passed this check,
 *     and those that come later, even if they were sent before, do not pass it.
 *   - Two attempts at the same entry meet at the primary key: the second waits for the first and
 *     then finds it.
 *   - An entry goes to MAX(idx) + 1 only, so an attempt that arrives after its entry was trimmed
 *     does nothing.
 *   - `sweep` and `trim` need no lock: they delete what the snapshots of `head` have made
 *     superfluous, and those only move forward. */
#include "cell/journal_sql.h"

#include <stdio.h>
#include <string.h>

#include "base/wait.h"

#define PAGE_ROWS 512
#define TRIM_ROWS 1000
#define LOAD_TRIES 3
#define TEXT_OF(number) TEXT(number)
#define TEXT(number) #number
#define PAGE_BYTES 1048576
_Static_assert(PAGE_BYTES == JOURNAL_PAGE_MAX, "as the statement has it");

#define LAST "COALESCE((SELECT MAX(l.idx) FROM entries AS l), 0)"
#define MANDATE "epoch = r.epoch AND claim = r.claim"

static const char *const texts[SQL_STATEMENTS] = {
    [SQL_HEAD] = "SELECT epoch, claim, url, snapshot, " LAST " FROM head",
    [SQL_ENTRIES] =
        "SELECT e.idx, e.data FROM (SELECT idx, SUM(bytes) OVER (ORDER BY idx) AS total"
        " FROM (SELECT p.idx, length(p.data) AS bytes FROM entries AS p"
        " WHERE p.idx > r.after ORDER BY p.idx LIMIT " TEXT_OF(
            PAGE_ROWS) ") AS page) AS sized JOIN entries AS e ON e.idx = sized.idx"
                       " WHERE total <= " TEXT_OF(PAGE_BYTES) " OR e.idx = r.after + 1"
                                                              " ORDER BY e.idx{args(after bigint)}",
    [SQL_APPEND] = "INSERT INTO entries (idx, id, data) SELECT r.idx, r.id, r.data FROM head"
                   " WHERE " MANDATE " AND r.idx = 1 + " LAST "{share} ON CONFLICT DO NOTHING"
                   "{args(epoch bigint, claim bytes, idx bigint, id bytes, data bytes)}",
    [SQL_ENTRY_ID] = "SELECT id FROM entries WHERE idx = r.idx{args(idx bigint)}",
    [SQL_CLAIM] = "UPDATE head SET epoch = r.epoch, claim = r.claim, url = r.url"
                  " WHERE epoch = r.epoch - 1{args(epoch bigint, claim bytes, url text)}",
    [SQL_PUT_CHUNK] = "INSERT INTO chunks (idx, part, data) SELECT r.idx, r.part, r.data FROM head"
                      " WHERE " MANDATE " AND snapshot < r.idx{share}"
                      " ON CONFLICT (idx, part) DO UPDATE SET data = excluded.data"
                      "{args(epoch bigint, claim bytes, idx bigint, part bigint, data bytes)}",
    [SQL_POINT] = "UPDATE head SET older = snapshot, snapshot = r.idx, snapshot_chunks = r.parts"
                  " WHERE " MANDATE " AND snapshot < r.idx AND r.idx <= " LAST
                  " AND (SELECT COUNT(*) FROM chunks AS c WHERE c.idx = r.idx AND c.part >= 0"
                  " AND c.part < r.parts) = r.parts"
                  "{args(epoch bigint, claim bytes, idx bigint, parts bigint)}",
    [SQL_SWEEP] = "DELETE FROM chunks WHERE idx < (SELECT snapshot FROM head)"
                  " AND idx <> (SELECT older FROM head)",
    [SQL_CHUNK] = "SELECT h.snapshot, h.snapshot_chunks, c.data FROM head AS h LEFT JOIN chunks AS"
                  " c ON c.idx = h.snapshot AND c.part = r.part{args(part bigint)}",
    [SQL_TRIM] = "DELETE FROM entries WHERE idx IN (SELECT e.idx FROM entries AS e WHERE e.idx <="
                 " (SELECT older FROM head WHERE " MANDATE
                 ") ORDER BY e.idx LIMIT " TEXT_OF(TRIM_ROWS) "){args(epoch bigint, claim bytes)}",
    /* A report may be lost: the next one comes soon. */
    [SQL_REPORT] = "INSERT INTO servers (url, idx, beat) VALUES (r.url, r.idx, r.beat)"
                   " ON CONFLICT (url) DO UPDATE SET idx = excluded.idx, beat = excluded.beat"
                   " RETURNING 1{may_be_lost}{args(url text, idx bigint, beat bigint)}",
    [SQL_REPORT_DELETE] =
        "DELETE FROM servers WHERE url = r.url RETURNING 1{may_be_lost}{args(url text)}",
    [SQL_REPORTS] =
        "SELECT url, idx, beat FROM servers ORDER BY url LIMIT r.most{args(most bigint)}",
};

static struct journal_sql *of(struct journal *j) { return (struct journal_sql *)(void *)j; }

/* ---- opening ---- */

struct db_options journal_sql_options(struct journal_sql *j, const struct journal_options *options)
{
    j->timeout_ms = options->timeout_ms ? options->timeout_ms : JOURNAL_TIMEOUT_MS;
    return (struct db_options){.clock = options->clock,
                               .writer = true,
                               .timeout_ms = j->timeout_ms,
                               .give_up_us = &j->give_up_us};
}

enum hf_status journal_sql_prepare(struct journal_sql *j, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (int i = 0; i < SQL_STATEMENTS && status == HF_OK; i++)
        status = j->db->driver->prepare(j->db, texts[i], &j->statements[i], err);
    return status;
}

void journal_sql_begin_call(struct journal_sql *j)
{
    atomic_store(&j->give_up_us, wait_now_us() + j->timeout_ms * 1000);
}

void journal_sql_close(struct journal_sql *j)
{
    db_close(j->db);
    j->db = NULL;
}

enum hf_status journal_sql_failure(enum hf_status status, struct hf_err *err)
{
    if (status == HF_STORE_UNAVAILABLE || status == HF_CONFLICT)
        status = HF_UNAVAILABLE;
    if (err && status != HF_OK)
        err->code = status;
    return status;
}

static enum journal_result result_of(enum hf_status status)
{
    switch (status) {
    case HF_OK:
        return JOURNAL_DONE;
    case HF_OUTCOME_UNKNOWN:
        return JOURNAL_UNKNOWN;
    case HF_UNAVAILABLE:
    case HF_STORE_UNAVAILABLE:
    case HF_CONFLICT:
        return JOURNAL_UNREACHABLE;
    default:
        return JOURNAL_DAMAGED;
    }
}

/* ---- statements ---- */

/* Runs a statement as a transaction of its own. */
static enum hf_status write_once(struct journal_sql *j, enum journal_sql_statement which,
                                 const struct db_value *args, int64_t *ret_changes,
                                 struct hf_err *err)
{
    const struct db_driver *driver = j->db->driver;
    struct db_stmt *stmt = j->statements[which];
    int64_t changes = 0;
    enum hf_status status;
    if (driver->network) {
        status = driver->network->run(stmt, args, &changes, err);
    } else if ((status = driver->begin(j->db, err)) != HF_OK ||
               (status = db_exec(stmt, args, &changes, err)) != HF_OK ||
               (status = driver->commit(j->db, err)) != HF_OK) {
        driver->rollback(j->db);
    }
    if (status != HF_OK)
        return status;
    j->commits += changes > 0;
    *ret_changes = changes;
    return HF_OK;
}

/* Moves to the first row of a query; *ret_found is false if there is none. */
static enum hf_status first_row(struct db_stmt *stmt, bool *ret_found, struct hf_err *err)
{
    struct hf_err why = {0};
    enum db_step step = db_step(stmt, &why);
    if (step == DB_FAILED)
        return hf_err_set(err, why.code, "%s", why.msg);
    *ret_found = step == DB_ROW;
    return HF_OK;
}

static void finish(struct db_stmt *stmt) { stmt->driver->finish(stmt); }

static void copy_text(char *ret, size_t size, struct db_stmt *stmt, int column)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    (void)snprintf(ret, size, "%.*s", text ? (int)len : 0, text ? text : "");
}

static bool column_is(struct db_stmt *stmt, int column, const uint8_t *bytes, size_t len)
{
    size_t n;
    const void *data = db_column_data(stmt, column, &n);
    return data && n == len && memcmp(data, bytes, len) == 0;
}

/* ---- the head ---- */

/* Reads the head from the query that was started. */
static enum hf_status head_take(struct journal_sql *j, struct journal_head *ret, struct hf_err *err)
{
    struct db_stmt *stmt = j->statements[SQL_HEAD];
    bool found = false;
    enum hf_status status = first_row(stmt, &found, err);
    if (status == HF_OK && !found)
        status = hf_err_set(err, HF_INTERNAL, "the journal's table `head` is empty");
    if (status != HF_OK)
        return status;
    *ret = (struct journal_head){.epoch = db_column_int(stmt, 0),
                                 .snapshot = db_column_int(stmt, 3),
                                 .last = db_column_int(stmt, 4)};
    size_t len;
    const void *claim = db_column_data(stmt, 1, &len);
    if (claim && len == sizeof ret->claim)
        memcpy(ret->claim, claim, len);
    copy_text(ret->url, sizeof ret->url, stmt, 2);
    finish(stmt);
    return HF_OK;
}

static enum hf_status head_read(struct journal_sql *j, struct journal_head *ret, struct hf_err *err)
{
    enum hf_status status = db_query(j->statements[SQL_HEAD], NULL, err);
    return status == HF_OK ? head_take(j, ret, err) : status;
}

static bool is_current(const struct journal_head *head, const struct journal_mandate *m)
{
    return m->epoch > 0 && head->epoch == m->epoch &&
           memcmp(head->claim, m->claim, sizeof m->claim) == 0;
}

/* A write has changed nothing, and the reason could not be read: an earlier attempt at it may have
 * succeeded. */
static enum journal_result not_explained(enum hf_status status)
{
    enum journal_result result = result_of(status);
    return result == JOURNAL_UNREACHABLE ? JOURNAL_UNKNOWN : result;
}

/* ---- reading ---- */

/* The entries are without gaps.  An attempt that was late may have left one that is trimmed, below
 * a gap: it ends the page. */
static enum hf_status entries_take(struct journal_sql *j, int64_t after, struct journal_page *ret,
                                   bool *ret_gap, struct hf_err *err)
{
    struct db_stmt *stmt = j->statements[SQL_ENTRIES];
    enum db_step step;
    struct hf_err why = {0};
    *ret_gap = false;
    while ((step = db_step(stmt, &why)) == DB_ROW) {
        int64_t index = db_column_int(stmt, 0);
        if (index != after + 1 + (int64_t)ret->entries.n) {
            *ret_gap = true;
            finish(stmt);
            return HF_OK;
        }
        size_t len;
        const void *data = db_column_data(stmt, 1, &len);
        *vec_push(&ret->entries) =
            (struct journal_entry){.index = index, .at = ret->bytes.len, .len = len};
        buf_put(&ret->bytes, data, len);
    }
    return step == DB_FAILED ? hf_err_set(err, why.code, "%s", why.msg) : HF_OK;
}

/* The head is read first, so it is the older one. */
enum journal_result journal_sql_read(struct journal *base, int64_t after, struct journal_page *ret,
                                     struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(after)};
    bool gap = false;
    enum hf_status status;
    journal_sql_begin_call(j);
    journal_page_clear(ret);
    if ((status = db_query(j->statements[SQL_HEAD], NULL, err)) != HF_OK ||
        (status = db_query(j->statements[SQL_ENTRIES], args, err)) != HF_OK ||
        (status = head_take(j, &ret->head, err)) != HF_OK ||
        (status = entries_take(j, after, ret, &gap, err)) != HF_OK)
        return result_of(status);
    if (ret->entries.n == 0 && (gap || ret->head.last > after))
        return JOURNAL_TRIMMED;
    return JOURNAL_DONE;
}

/* Reads one chunk of the newest snapshot.  *ret_index and *ret_parts are those of the snapshot. */
static enum journal_result chunk_read(struct journal_sql *j, int64_t part, int64_t *ret_index,
                                      int64_t *ret_parts, struct buf *ret, struct hf_err *err)
{
    struct db_stmt *stmt = j->statements[SQL_CHUNK];
    const struct db_value args[] = {db_int(part)};
    bool found = false;
    journal_sql_begin_call(j);
    enum hf_status status = db_query(stmt, args, err);
    if (status == HF_OK)
        status = first_row(stmt, &found, err);
    if (status != HF_OK)
        return result_of(status);
    if (!found || !db_column_int(stmt, 0)) {
        finish(stmt);
        return JOURNAL_NONE;
    }
    size_t len;
    const void *data = db_column_data(stmt, 2, &len);
    *ret_index = db_column_int(stmt, 0);
    *ret_parts = db_column_int(stmt, 1);
    bool missing = !data && part < *ret_parts;
    if (data && part < *ret_parts)
        buf_put(ret, data, len);
    finish(stmt);
    if (!missing)
        return JOURNAL_DONE;
    (void)hf_err_set(err, HF_INTERNAL, "chunk %lld of %lld of the snapshot after %lld is missing",
                     (long long)part, (long long)*ret_parts, (long long)*ret_index);
    return JOURNAL_DAMAGED;
}

/* Reads all chunks.  Returns JOURNAL_TRIMMED if another snapshot became the newest meanwhile. */
static enum journal_result chunks_read(struct journal_sql *j, int64_t *ret_index, struct buf *ret,
                                       struct hf_err *err)
{
    int64_t first = 0, index = 0, parts = 1;
    for (int64_t part = 0; part < parts; part++) {
        enum journal_result result = chunk_read(j, part, &index, &parts, ret, err);
        if (result != JOURNAL_DONE)
            return result;
        first = part == 0 ? index : first;
        if (index != first)
            return JOURNAL_TRIMMED;
    }
    *ret_index = index;
    return JOURNAL_DONE;
}

/* Each chunk has its time, and is not larger than an entry. */
enum journal_result journal_sql_load(struct journal *base, int64_t *ret_index, struct buf *ret,
                                     struct hf_err *err)
{
    size_t len = ret->len;
    for (int i = 0; i < LOAD_TRIES; i++) {
        enum journal_result result = chunks_read(of(base), ret_index, ret, err);
        if (result == JOURNAL_DONE)
            return result;
        ret->len = len;
        if (result != JOURNAL_TRIMMED)
            return result;
    }
    (void)hf_err_set(err, HF_UNAVAILABLE, "the snapshot was replaced again and again meanwhile");
    return JOURNAL_UNREACHABLE;
}

/* ---- writing ---- */

enum journal_result journal_sql_claim(struct journal *base, const struct journal_mandate *m,
                                      const char *url, struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(m->epoch), db_bytes(m->claim, sizeof m->claim),
                                    db_text(url, strlen(url))};
    struct journal_head head;
    int64_t changes;
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_CLAIM, args, &changes, err);
    if (status != HF_OK || changes)
        return result_of(status);
    status = head_read(j, &head, err);
    if (status != HF_OK)
        return not_explained(status);
    return is_current(&head, m) ? JOURNAL_FOUND : JOURNAL_DEPOSED;
}

static enum hf_status entry_has_id(struct journal_sql *j, int64_t index,
                                   const uint8_t id[JOURNAL_ID_SIZE], bool *ret, struct hf_err *err)
{
    struct db_stmt *stmt = j->statements[SQL_ENTRY_ID];
    const struct db_value args[] = {db_int(index)};
    bool found = false;
    enum hf_status status = db_query(stmt, args, err);
    if (status == HF_OK)
        status = first_row(stmt, &found, err);
    if (status != HF_OK)
        return status;
    *ret = found && column_is(stmt, 0, id, JOURNAL_ID_SIZE);
    finish(stmt);
    return HF_OK;
}

static enum journal_result why_not_appended(struct journal_sql *j, const struct journal_mandate *m,
                                            int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                            struct hf_err *err)
{
    struct journal_head head;
    bool found = false;
    enum hf_status status = entry_has_id(j, index, id, &found, err);
    if (status == HF_OK && !found)
        status = head_read(j, &head, err);
    if (status != HF_OK)
        return not_explained(status);
    if (found)
        return JOURNAL_FOUND;
    if (!is_current(&head, m) || index <= head.last)
        return JOURNAL_DEPOSED;
    (void)hf_err_set(err, HF_INTERNAL,
                     "the journal ends at entry %lld, and its master wants to store entry %lld: it"
                     " has lost what it acknowledged",
                     (long long)head.last, (long long)index);
    return JOURNAL_DAMAGED;
}

enum journal_result journal_sql_append(struct journal *base, const struct journal_mandate *m,
                                       int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                       const void *data, size_t len, struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(m->epoch), db_bytes(m->claim, sizeof m->claim),
                                    db_int(index), db_bytes(id, JOURNAL_ID_SIZE),
                                    db_bytes(len ? data : "", len)};
    int64_t changes;
    hf_check(len <= JOURNAL_CHUNK_MAX && index > 0);
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_APPEND, args, &changes, err);
    if (status != HF_OK || changes)
        return result_of(status);
    return why_not_appended(j, m, index, id, err);
}

enum journal_result journal_sql_put_chunk(struct journal *base, const struct journal_mandate *m,
                                          int64_t index, int64_t no, const void *data, size_t len,
                                          struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(m->epoch), db_bytes(m->claim, sizeof m->claim),
                                    db_int(index), db_int(no), db_bytes(len ? data : "", len)};
    struct journal_head head;
    int64_t changes;
    hf_check(len <= JOURNAL_CHUNK_MAX);
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_PUT_CHUNK, args, &changes, err);
    if (status != HF_OK || changes)
        return result_of(status);
    status = head_read(j, &head, err);
    if (status != HF_OK)
        return not_explained(status);
    return is_current(&head, m) ? JOURNAL_DONE : JOURNAL_DEPOSED;
}

/* The pointer is stored.  Chunks that nobody needs any more are deleted by a statement of its own;
 * should it fail, the caller repeats the whole, or the next snapshot deletes them. */
static enum journal_result sweep(struct journal_sql *j, struct hf_err *err)
{
    int64_t changes;
    enum hf_status status = write_once(j, SQL_SWEEP, NULL, &changes, err);
    return status == HF_OK ? JOURNAL_DONE : not_explained(status);
}

enum journal_result journal_sql_point(struct journal *base, const struct journal_mandate *m,
                                      int64_t index, int64_t n_chunks, struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(m->epoch), db_bytes(m->claim, sizeof m->claim),
                                    db_int(index), db_int(n_chunks)};
    struct journal_head head;
    int64_t changes;
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_POINT, args, &changes, err);
    if (status != HF_OK)
        return result_of(status);
    if (changes)
        return sweep(j, err);
    status = head_read(j, &head, err);
    if (status != HF_OK)
        return not_explained(status);
    if (!is_current(&head, m))
        return JOURNAL_DEPOSED;
    if (head.snapshot == index)
        return sweep(j, err);
    (void)hf_err_set(err, HF_INTERNAL,
                     "the snapshot after %lld of %lld chunks is not complete, or is older than the"
                     " newest, %lld, or newer than the last entry, %lld",
                     (long long)index, (long long)n_chunks, (long long)head.snapshot,
                     (long long)head.last);
    return JOURNAL_DAMAGED;
}

enum journal_result journal_sql_trim(struct journal *base, const struct journal_mandate *m,
                                     bool *ret_more, struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_int(m->epoch), db_bytes(m->claim, sizeof m->claim)};
    struct journal_head head;
    int64_t changes;
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_TRIM, args, &changes, err);
    if (status != HF_OK)
        return result_of(status);
    if (!changes) {
        status = head_read(j, &head, err);
        if (status != HF_OK)
            return not_explained(status);
        if (!is_current(&head, m))
            return JOURNAL_DEPOSED;
    }
    *ret_more = changes == TRIM_ROWS;
    return JOURNAL_DONE;
}

/* ---- reports ---- */

static enum hf_status reports_read(struct journal_sql *j, struct journal_server *ret, size_t max,
                                   size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt = j->statements[SQL_REPORTS];
    const struct db_value args[] = {db_int((int64_t)max)};
    struct hf_err why = {0};
    enum db_step step;
    size_t n = 0;
    enum hf_status status = db_query(stmt, args, err);
    if (status != HF_OK)
        return status;
    while ((step = db_step(stmt, &why)) == DB_ROW) {
        copy_text(ret[n].url, sizeof ret[n].url, stmt, 0);
        ret[n].index = db_column_int(stmt, 1);
        ret[n++].beat = db_column_int(stmt, 2);
    }
    if (step == DB_FAILED)
        return hf_err_set(err, why.code, "%s", why.msg);
    *ret_n = n;
    return HF_OK;
}

enum journal_result journal_sql_report(struct journal *base, const struct journal_server *self,
                                       const char *gone, struct journal_server *ret, size_t max,
                                       size_t *ret_n, struct hf_err *err)
{
    struct journal_sql *j = of(base);
    const struct db_value args[] = {db_text(self->url, strlen(self->url)), db_int(self->index),
                                    db_int(self->beat)};
    const struct db_value who[] = {db_text(gone, gone ? strlen(gone) : 0)};
    int64_t changes;
    journal_sql_begin_call(j);
    enum hf_status status = write_once(j, SQL_REPORT, args, &changes, err);
    if (status == HF_OK && gone)
        status = write_once(j, SQL_REPORT_DELETE, who, &changes, err);
    if (status == HF_OK)
        status = reports_read(j, ret, max, ret_n, err);
    return result_of(status);
}
