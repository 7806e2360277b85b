/* See verify_database.h. */
#include "ledger/verify_database.h"

#include <string.h>

#include "ledger/ledger_internal.h"
#include "ledger/schema_check.h"
#include "ledger/verify_internal.h"

static void on_difference(void *ctx, const struct schema_difference *difference)
{
    verify_violation(ctx, VERIFY_SCHEMA, "%s %s", difference->object,
                     schema_fault_text(difference->fault));
}

static enum hf_status check_file(struct db *db, struct verify_report *report, struct hf_err *err)
{
    struct buf lines = {0};
    bool is_whole;
    if (!db->driver->file)
        return HF_OK;
    enum hf_status status = db->driver->file->check(db, 0, &lines, &is_whole, err);
    report->checks[VERIFY_FILE].rows += status == HF_OK;
    if (lines.len)
        buf_char(&lines, '\0');
    for (char *rest = lines.data, *line; status == HF_OK && (line = strsep(&rest, "\n"));)
        if (*line)
            verify_violation(report, VERIFY_FILE, "%s", line);
    buf_close(&lines);
    return status;
}

enum hf_status verify_database(struct db *db, const struct clock *clock,
                               struct verify_report *report, struct hf_err *err)
{
    enum hf_status status = schema_compare(db, clock, ledger_migrations_len, on_difference, report,
                                           &report->checks[VERIFY_SCHEMA].rows, err);
    return status == HF_OK ? check_file(db, report, err) : status;
}

enum hf_status verify_database_explains(const struct verify_report *report, enum hf_status status,
                                        struct hf_err *err)
{
    const enum verify_id reasons[] = {VERIFY_FILE, VERIFY_SCHEMA};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (report->checks[reasons[i]].violations)
            return hf_err_set(err, HF_STORE_UNAVAILABLE,
                              "the ledger cannot be read, since its %s: %.120s; restore a backup",
                              reasons[i] == VERIFY_FILE ? "file is damaged"
                                                        : "schema is not Holdfast's",
                              report->checks[reasons[i]].examples[0]);
    return status;
}
