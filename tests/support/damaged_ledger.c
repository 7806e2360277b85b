/* See damaged_ledger.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "support/damaged_ledger.h"
#include "support/process.h"

void damaged_ledger_init(struct damaged_ledger *l)
{
    process_make_dir("verify", l->dir, sizeof l->dir);
    snprintf(l->good, sizeof l->good, "%s/good.db", l->dir);
    snprintf(l->copy, sizeof l->copy, "%s/copy.db", l->dir);
    snprintf(l->url, sizeof l->url, "sqlite:%s", l->good);
}

void damaged_ledger_close(struct damaged_ledger *l)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", l->dir);
    assert_int_equal(system(command), 0);
}

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(to, 0600), 0);
}

static void expand_keys(const char *text, struct buf *out)
{
    while (*text) {
        long long event, item;
        int len = 0;
        bool seat = strncmp(text, "seat:", 5) == 0, hold = strncmp(text, "hold:", 5) == 0;
        if ((seat || hold) && sscanf(text + 5, "%lld.%lld%n", &event, &item, &len) == 2) {
            buf_int(out, seat ? SEAT_KEY(event, item) : HOLD_KEY(event, item));
            text += 5 + len;
        } else {
            buf_char(out, *text++);
        }
    }
    buf_char(out, '\0');
}

void damaged_ledger_damage(const struct damaged_ledger *l, const char *text)
{
    sqlite3 *db;
    char *message = NULL;
    struct buf sql = {0};
    expand_keys(text, &sql);
    copy_file(l->good, l->copy);
    assert_int_equal(sqlite3_open(l->copy, &db), SQLITE_OK);
    sqlite3_exec(db, sql.data, NULL, NULL, &message);
    int changes = sqlite3_total_changes(db);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    if (message || !changes)
        fail_msg("%s: %s", sql.data, message ? message : "changes nothing");
    buf_close(&sql);
}

void damaged_ledger_verify(const char *path, struct verify_report *ret)
{
    struct hf_err err = {0};
    char url[128];
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (ledger_verify(url, &clock_system, ret, &err) != HF_OK)
        fail_msg("%s", err.msg);
}

void damaged_ledger_is_sound(const char *path, struct verify_report *ret)
{
    damaged_ledger_verify(path, ret);
    for (size_t i = 0; i < VERIFY_GATE; i++)
        if (ret->checks[i].violations)
            fail_msg("%s %s: %s", ret->checks[i].invariant, ret->checks[i].what,
                     ret->checks[i].examples[0]);
    assert_int_equal(ret->violations, 0);
}

/* Lists each violated invariant once. */
static void list_violated(const struct verify_report *report, char out[64])
{
    const char *last = "";
    out[0] = '\0';
    for (size_t i = 0; i < VERIFY_COUNT; i++) {
        const struct verify_check *check = &report->checks[i];
        if (!check->violations || strcmp(check->invariant, last) == 0)
            continue;
        last = check->invariant;
        snprintf(out + strlen(out), 64 - strlen(out), "%s%s", out[0] ? " " : "", last);
    }
}

void damaged_ledger_is_named(const struct damaged_ledger *l, const struct damage *d)
{
    struct verify_report report;
    char found[64];
    damaged_ledger_damage(l, d->sql);
    damaged_ledger_verify(l->copy, &report);
    list_violated(&report, found);
    assert_string_equal(found, d->violated);
    assert_true(report.checks[d->id].violations > 0);
    assert_true(strlen(report.checks[d->id].examples[0]) > 0);
}
