/* `holdfast verify`: runs ledger_verify, verify_waits, and verify_gate if there is a gate, and prints
 * one line per check, or JSON.
 *
 * Servers may go on working meanwhile: the ledger is read from one snapshot, which contains each
 * transaction as a whole or not at all, so a violation in it is real.  All the same, if there is a
 * violation, everything is read again RECHECK_AFTER_S seconds later, and the second report is the
 * one that is printed: an alarm should not depend on the moment at which it was looked for. */
#include "cli/verify.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/json_put.h"
#include "base/wait.h"
#include "cli/common.h"
#include "cli/render.h"
#include "cli/verify_gate.h"
#include "cli/verify_names.h"
#include "cli/verify_waits.h"
#include "ledger/verify.h"

#define RECHECK_AFTER_S 2

static const char usage[] =
    "usage: holdfast verify --ledger sqlite:PATH|postgres://... [--gate redis://...] [--json]\n"
    "Checks every invariant that the ledger's rows can show, on one snapshot; servers may be\n"
    "running on it.  Replays the logs of events with waiting lists.  With --gate also that the "
    "gate has nothing the ledger does not, which is so\n"
    "after the servers' reconciler has run.  The URLs also from HOLDFAST_LEDGER and "
    "HOLDFAST_GATE.\n"
    "Exit status: 0 all is well, 1 an invariant is violated, 64 usage, 69 the ledger or the gate\n"
    "cannot be read.\n";

static bool is_made(size_t check, bool with_gate) { return check != VERIFY_GATE || with_gate; }

static void print_example(int64_t k, const char *example)
{
    struct buf b = {0};
    render_text(&b, example, strlen(example));
    printf("%s %.*s", k ? ";" : ":", (int)b.len, b.len ? b.data : "");
    buf_close(&b);
}

static void print_text(const struct verify_report *report, bool with_gate)
{
    for (size_t i = 0; i < VERIFY_COUNT; i++) {
        const struct verify_check *c = &report->checks[i];
        if (!is_made(i, with_gate))
            continue;
        printf("%-4s %-8s %9lld %-8s  %s", c->invariant, c->violations ? "VIOLATED" : "ok",
               (long long)c->rows, c->unit, c->what);
        if (c->violations)
            printf(": %lld not so", (long long)c->violations);
        for (int64_t k = 0; k < c->violations && k < VERIFY_EXAMPLES; k++)
            print_example(k, c->examples[k]);
        putchar('\n');
    }
    if (report->owed) {
        printf("%-4s %-8s %9lld %-8s  %s", "I9", "owed", (long long)report->owed, "payments",
               "money that must go back, and whose last refund has failed");
        for (int64_t k = 0; k < report->owed && k < VERIFY_EXAMPLES; k++)
            print_example(k, report->owed_examples[k]);
        putchar('\n');
    }
    if (report->unchecked)
        printf("%-4s %-8s %9lld %-8s  %s\n", "I19", "owed", (long long)report->unchecked,
               "payments", "not compared with the provider since the ledger was restored");
    printf("%s: %lld events, %lld violations\n", report->violations ? "VIOLATED" : "ok",
           (long long)report->events, (long long)report->violations);
}

static void put_examples(struct buf *out, const char *name,
                         const char (*examples)[VERIFY_EXAMPLE_SIZE], int64_t n)
{
    json_open(out, name, '[');
    for (int64_t i = 0; i < n && i < VERIFY_EXAMPLES; i++)
        json_put_text(out, NULL, examples[i]);
    buf_char(out, ']');
}

static void print_json(const struct verify_report *report, bool with_gate)
{
    struct buf b = {0};
    buf_char(&b, '{');
    json_put_bool(&b, "ok", !report->violations);
    json_put_int(&b, "events", report->events);
    json_put_int(&b, "violations", report->violations);
    json_put_int(&b, "owed", report->owed);
    json_put_int(&b, "unchecked", report->unchecked);
    put_examples(&b, "owed_examples", report->owed_examples, report->owed);
    json_open(&b, "checks", '[');
    for (size_t i = 0; i < VERIFY_COUNT; i++) {
        const struct verify_check *c = &report->checks[i];
        if (!is_made(i, with_gate))
            continue;
        json_open(&b, NULL, '{');
        json_put_text(&b, "invariant", c->invariant);
        json_put_text(&b, "what", c->what);
        json_put_text(&b, "unit", c->unit);
        json_put_int(&b, "rows", c->rows);
        json_put_bool(&b, "ok", !c->violations);
        json_put_int(&b, "violations", c->violations);
        put_examples(&b, "examples", c->examples, c->violations);
        buf_char(&b, '}');
    }
    buf_str(&b, "]}\n");
    fwrite(b.data, 1, b.len, stdout);
    buf_close(&b);
}

static enum hf_status make_report(const char *url, const char *gate, struct verify_report *report,
                                  struct hf_err *err)
{
    enum hf_status status = ledger_verify(url, &clock_system, report, err);
    if (status == HF_OK)
        status = verify_waits(url, &clock_system, report, err);
    return status == HF_OK && gate ? verify_gate(url, gate, &clock_system, report, err) : status;
}

static enum hf_status verify(const char *url, const char *gate, struct verify_report *report,
                             struct hf_err *err)
{
    enum hf_status status = make_report(url, gate, report, err);
    if (status == HF_OK && report->violations) {
        wait_sleep_us(RECHECK_AFTER_S * INT64_C(1000000));
        status = make_report(url, gate, report, err);
    }
    if (status == HF_OK)
        verify_names(url, &clock_system, report);
    return status;
}

int cli_verify(int argc, char **argv)
{
    const char *url = getenv("HOLDFAST_LEDGER"), *gate = getenv("HOLDFAST_GATE");
    bool json = false;
    const struct cli_option options[] = {{"ledger", CLI_TEXT, .to = &url},
                                         {"gate", CLI_TEXT, .to = &gate},
                                         {"json", CLI_TRUE, .to = &json},
                                         {0}};
    int code = cli_options("verify", argc, argv, options, usage);
    if (code >= 0)
        return code;
    if (!url)
        return cli_no_ledger("verify");
    if (optind != argc)
        return cli_misused("verify", "unexpected operand %.60s", argv[optind]);
    struct hf_err err = {0};
    struct verify_report report;
    enum hf_status status = verify(url, gate, &report, &err);
    if (status != HF_OK) {
        fprintf(stderr, "holdfast verify: %s\n", err.msg);
        return status == HF_INVALID_REQUEST ? EX_USAGE : EX_UNAVAILABLE;
    }
    (json ? print_json : print_text)(&report, gate != NULL);
    if (fflush(stdout) != 0)
        return EX_UNAVAILABLE;
    return report.violations ? EXIT_FAILURE : EXIT_SUCCESS;
}
