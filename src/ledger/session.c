/* One connection to the ledger: opening it, its transactions, its clock, and what it shares with
 * the connections of other servers (notifications, the advisory lock).  All of it is the database
 * driver's work; this file adds the schema and the floor of the clock.  Belongs to the thread of
 * its connection. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"
#include "ledger/schema_check.h"

/* How long a server looks for damage before it begins: enough for a gigabyte or two, and little
 * beside the time that a restart takes anyway. */
#define FILE_CHECK_MS 5000

/* A page that is damaged may hold anything.  Nothing is written to such a file. */
static enum hf_status check_file(struct ledger *l, struct hf_err *err)
{
    struct buf faults = {0};
    bool is_whole = true;
    enum hf_status status =
        l->db->driver->file
            ? l->db->driver->file->check(l->db, FILE_CHECK_MS, &faults, &is_whole, err)
            : HF_OK;
    l->is_checked_in_part = !is_whole;
    if (status == HF_OK && faults.len) {
        faults.data[strcspn(faults.data, "\n")] = '\0';
        status = hf_err_set(err, HF_STORE_UNAVAILABLE,
                            "the file is damaged (%.120s); restore a backup (`holdfast restore`)",
                            faults.data);
    }
    buf_close(&faults);
    return status;
}

/* What a writer finds is ours and sound before it changes anything. */
static enum hf_status prepare_schema(struct ledger *l, const struct clock *clock,
                                     struct hf_err *err)
{
    enum hf_status status = schema_accept(l->db, clock, err);
    if (status == HF_OK)
        status = check_file(l, err);
    return status == HF_OK ? ledger_migrate(l->db, ledger_migrations_len, err) : status;
}

static enum hf_status read_clock(struct ledger *l, struct hf_err *err)
{
    int64_t newest = 0;
    enum hf_status status = ledger_read_int(l, ST_CLOCK_MAX, &newest, err);
    if (status == HF_OK)
        l->db->driver->now_floor(l->db, newest);
    return status;
}

static enum hf_status open_or_join(const char *url, const struct db_options *options,
                                   bool has_writer, struct ledger **ret, struct hf_err *err)
{
    struct ledger *l = hf_alloc(sizeof *l);
    enum hf_status status = db_open(url, options, &l->db, err);
    if (status == HF_OK && options->writer && !has_writer)
        status = prepare_schema(l, options->clock, err);
    if (status == HF_OK)
        status = read_clock(l, err);
    if (status != HF_OK) {
        ledger_close(l);
        return status;
    }
    *ret = l;
    return HF_OK;
}

enum hf_status ledger_open(const char *url, const struct db_options *options, struct ledger **ret,
                           struct hf_err *err)
{
    return open_or_join(url, options, false, ret, err);
}

enum hf_status ledger_join(const char *url, const struct db_options *options, struct ledger **ret,
                           struct hf_err *err)
{
    return open_or_join(url, options, true, ret, err);
}

void ledger_close(struct ledger *l)
{
    if (!l)
        return;
    db_close(l->db);
    vec_close(&l->args);
    for (int i = 0; i < LEDGER_READS; i++)
        vec_close(&l->reads[i]);
    buf_close(&l->text);
    free(l);
}

bool ledger_has_others(const struct ledger *l) { return l->db->driver->many_writers; }

/* ---- transactions ---- */

enum hf_status ledger_begin(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->begin(l->db, err);
}

enum hf_status ledger_commit(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->commit(l->db, err);
}

void ledger_rollback(struct ledger *l) { l->db->driver->rollback(l->db); }

int64_t ledger_exchanges(const struct ledger *l) { return l->db->driver->upkeep.exchanges(l->db); }

enum hf_status ledger_commit_touch(struct ledger *l, int64_t now, struct hf_err *err)
{
    const struct db_value args[] = {db_int(now)};
    enum hf_status status = ledger_exec(l, ST_CLOCK_TOUCH, args, NULL, err);
    return status == HF_OK ? ledger_commit(l, err) : status;
}

enum hf_status ledger_probe(struct ledger *l, int64_t room_bytes, struct hf_err *err)
{
    int64_t now;
    enum hf_status status;
    if ((status = ledger_now(l, &now, err)) != HF_OK || (status = ledger_begin(l, err)) != HF_OK)
        return status;
    if (room_bytes && l->db->driver->file)
        status = l->db->driver->file->check_room(l->db, room_bytes, err);
    if (status == HF_OK)
        status = ledger_commit_touch(l, now, err);
    if (status != HF_OK)
        ledger_rollback(l);
    return status;
}

/* ---- the database itself ---- */

enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err)
{
    return l->db->driver->now_ms(l->db, ret_now, err);
}

enum hf_status ledger_maintain(struct ledger *l, struct db_log *ret, struct hf_err *err)
{
    return l->db->driver->upkeep.maintain(l->db, ret, err);
}

int64_t ledger_log_bytes(const struct ledger *l) { return l->db->driver->upkeep.log_bytes(l->db); }

enum hf_status ledger_warnings(struct ledger *l, struct buf *ret_lines, struct hf_err *err)
{
    if (l->is_checked_in_part)
        buf_lit(ret_lines, "the file is too large to be checked whole at the start: let `holdfast "
                           "verify` do so\n");
    return l->db->driver->upkeep.warnings(l->db, ret_lines, err);
}

/* ---- other servers ---- */

enum hf_status ledger_notify(struct ledger *l, const char *topic, const char *text,
                             struct hf_err *err)
{
    return l->db->driver->network->notify(l->db, topic, text, err);
}

enum hf_status ledger_listen(struct ledger *l, const char *topic, int wake_fd, int64_t timeout_ms,
                             struct buf *ret_lines, struct hf_err *err)
{
    return l->db->driver->network->listen(l->db, topic, wake_fd, timeout_ms, ret_lines, err);
}

enum hf_status ledger_try_lock(struct ledger *l, int64_t number, bool *ret_locked,
                               struct hf_err *err)
{
    return l->db->driver->network->try_lock(l->db, number, ret_locked, err);
}

enum hf_status ledger_unlock_all(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->network->unlock_all(l->db, err);
}
