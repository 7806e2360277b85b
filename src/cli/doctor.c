/* `holdfast doctor`: says what a lock on a coordinator is worth.  The driver examines the settings
 * (hf_examine); this file adds what can be found out about every coordinator: whether a lock can
 * really be taken, renewed, refused to a second holder and released, and how long an exchange
 * takes.  It leaves nothing behind but what the driver keeps for every name.  Main thread. */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_put.h"
#include "base/status.h"
#include "base/vec.h"
#include "cli/common.h"
#include "cli/options.h"

#define COMMAND "doctor"
#define EXIT_WARNINGS 1
#define SAMPLES 20          /* exchanges whose time is measured */
#define SAMPLES_US 3000000  /* after this long there are enough of them */
#define FINDINGS_MAX 100    /* what comes after that is dropped */
#define SLOW_US 50000       /* a median that is worth a note */
#define TOO_SLOW_US 1000000 /* a worst case that endangers renewals */

static const char usage[] =
    "usage: holdfast doctor [OPTION...] [URL]\n"
    "Examines a coordinator and says what a lock on it is worth: its version, persistence,\n"
    "eviction, replication, clock and rights, as far as its kind has them, and its latency.\n"
    "Takes and releases a lock of a name that nobody else uses.\n"
    "  URL, --lock URL        the coordinator; default $HOLDFAST_LOCK_URL\n"
    "  --timeout DURATION     for one exchange with the coordinator; default 2s\n"
    "  --json                 print JSON\n" CLI_LOCK_URLS
    "Exit status: 0 nothing to warn of, 1 warnings or worse, 69 coordinator unreachable, 64 "
    "usage.\n";

struct note {
    enum hf_grade grade;
    char *topic, *text;
};

struct doctor {
    struct ask ask;
    const struct hf_driver_info *driver;
    struct hf_locks *locks;
    char name[160]; /* of the lock that is tried */
    VEC(struct note) notes;
    enum hf_grade worst;
    int64_t median_us, worst_us; /* of an exchange */
};

static const char *grade_name(enum hf_grade grade)
{
    static const char *const names[] = {"good", "note", "warning", "danger"};
    return (size_t)grade < sizeof names / sizeof *names ? names[grade] : "?";
}

/* ---- findings ---- */

static void add(struct doctor *d, enum hf_grade grade, const char *topic, const char *text)
{
    d->worst = grade > d->worst ? grade : d->worst;
    if (d->notes.n < FINDINGS_MAX)
        *vec_push(&d->notes) = (struct note){.grade = grade,
                                             .topic = hf_strndup(topic, strlen(topic)),
                                             .text = hf_strndup(text, strlen(text))};
}

static void add_finding(void *ctx, const struct hf_finding *finding)
{
    if (finding->text[0])
        add(ctx, finding->grade, finding->topic, finding->text);
}

__attribute__((format(printf, 4, 5))) static void addf(struct doctor *d, enum hf_grade grade,
                                                       const char *topic, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add(d, grade, topic, text);
}

/* ---- trying a lock ---- */

static enum hf_result take(struct doctor *d, int64_t ttl_ms, struct hf_lock **ret,
                           struct hf_fault *fault)
{
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = ttl_ms, .manual = true, .label = d->ask.label);
    return fault->result = hf_lock(d->locks, d->name, &want, ret, fault);
}

/* Asks for the lock while it is held.  Returns false, with a finding, if it is granted. */
static bool try_second(struct doctor *d, int64_t ttl_ms)
{
    struct hf_fault fault = {0};
    struct hf_lock *second = NULL;
    if (take(d, ttl_ms, &second, &fault) == HF_TAKEN)
        return true;
    if (fault.result == HF_DONE)
        add(d, HF_DANGER, "exclusion",
            "A lock was granted to a second holder while the first held it.");
    else
        addf(d, HF_DANGER, "exclusion", "A second request for a lock failed: %s.", fault.msg);
    (void)!hf_unlock(second, NULL);
    return false;
}

/* Takes the lock once more after its release, and compares the fences. */
static bool try_fence(struct doctor *d, int64_t ttl_ms, int64_t before)
{
    struct hf_fault fault = {0};
    struct hf_lock *next = NULL;
    if (take(d, ttl_ms, &next, &fault) != HF_DONE) {
        addf(d, HF_DANGER, "rights", "A released lock cannot be taken again: %s.", fault.msg);
        return false;
    }
    int64_t after = hf_lock_fence(next);
    (void)!hf_unlock(next, NULL);
    if (after <= before)
        addf(d, HF_DANGER, "fence",
             "The fence of the next grant did not grow: %" PRId64 " after %" PRId64 ".", after,
             before);
    return after > before;
}

static void try_lock(struct doctor *d)
{
    struct hf_fault fault = {0};
    struct hf_lock *lock = NULL;
    static const int64_t ttls_ms[] = {3000, 10000, 1000, 60000};
    int64_t ttl_ms = 0;
    /* A coordinator may allow less than its driver; then one of the other times fits. */
    for (size_t i = 0; i < sizeof ttls_ms / sizeof *ttls_ms; i++)
        if (take(d, ttl_ms = ttls_ms[i], &lock, &fault) != HF_BAD_REQUEST)
            break;
    if (fault.result != HF_DONE) {
        addf(d, HF_DANGER, "rights", "A lock cannot be taken: %s.", fault.msg);
        return;
    }
    int64_t fence = hf_lock_fence(lock);
    bool ok = try_second(d, ttl_ms);
    if (hf_renew(lock, &fault) != HF_DONE) {
        addf(d, HF_DANGER, "rights", "A lock cannot be renewed: %s.", fault.msg);
        ok = false;
    }
    if (hf_unlock(lock, &fault) != HF_DONE) {
        addf(d, HF_DANGER, "rights", "A lock cannot be released: %s.", fault.msg);
        ok = false;
    }
    if (ok && try_fence(d, ttl_ms, fence))
        add(d, HF_GOOD, "rights",
            "A lock was taken, refused to a second holder, renewed and released; the next fence "
            "was "
            "larger.");
}

/* ---- latency ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(struct doctor *d)
{
    int64_t samples[SAMPLES], began = clock_monotonic_us(&clock_system);
    size_t n = 0;
    for (int64_t from = began, to; n < SAMPLES && from - began < SAMPLES_US; from = to) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        struct hf_fault fault = {0};
        enum hf_result result = hf_inspect(d->locks, d->name, &state, &fault);
        to = clock_monotonic_us(&clock_system);
        if (result != HF_DONE) {
            addf(d, HF_DANGER, "latency", "A lock cannot be inspected: %s.", fault.msg);
            return;
        }
        hf_lock_state_close(&state);
        samples[n++] = to - from;
    }
    qsort(samples, n, sizeof *samples, compare);
    d->median_us = samples[n / 2];
    d->worst_us = samples[n - 1];
    double median = (double)d->median_us / 1000, worst = (double)d->worst_us / 1000;
    if (d->worst_us >= TOO_SLOW_US)
        addf(d, HF_WARNING, "latency",
             "An exchange takes %.1f ms (median of %zu), %.1f ms at worst.  A lock is lost if a "
             "third "
             "of its TTL is not enough to renew it: use TTLs of at least %.0f s.",
             median, n, worst, worst / 100 + 1);
    else
        addf(d, d->median_us >= SLOW_US ? HF_NOTE : HF_GOOD, "latency",
             "An exchange takes %.2f ms (median of %zu), %.2f ms at worst.", median, n, worst);
}

/* ---- the report ---- */

/* Appends the topics of the findings that are at least warnings, each once. */
static void put_topics(struct buf *b, const struct doctor *d)
{
    const char *between = "";
    for (size_t i = 0; i < d->notes.n; i++) {
        bool seen = d->notes.v[i].grade < HF_WARNING;
        for (size_t k = 0; k < i && !seen; k++)
            seen = d->notes.v[k].grade >= HF_WARNING &&
                   strcmp(d->notes.v[k].topic, d->notes.v[i].topic) == 0;
        if (seen)
            continue;
        buf_printf(b, "%s%s", between, d->notes.v[i].topic);
        between = ", ";
    }
}

static void put_verdict(struct buf *b, const struct doctor *d)
{
    if (d->worst < HF_WARNING) {
        buf_lit(b, "A lock here is worth what its driver promises.");
        return;
    }
    if (d->worst == HF_DANGER)
        buf_lit(b, "Do not rely on a lock here, because of ");
    else
        buf_lit(b, "A lock here is worth less than its driver promises, because of ");
    put_topics(b, d);
    buf_char(b, '.');
}

static void put_text(struct buf *b, const struct doctor *d)
{
    for (size_t i = 0; i < d->notes.n; i++)
        buf_printf(b, "%-8s %-12s %s\n", grade_name(d->notes.v[i].grade), d->notes.v[i].topic,
                   d->notes.v[i].text);
    put_verdict(b, d);
    buf_char(b, '\n');
    if (d->driver)
        buf_printf(b, "Survives: %s\n", d->driver->survives);
    if (d->driver && d->driver->beware)
        buf_printf(b, "Beware: %s\n", d->driver->beware);
}

static void put_json(struct buf *b, const struct doctor *d)
{
    struct buf verdict = {0};
    put_verdict(&verdict, d);
    buf_lit(b, "{\"object\":\"examination\"");
    json_put_text(b, "driver", d->driver ? d->driver->name : "");
    json_put_text(b, "grade", grade_name(d->worst));
    buf_printf(b, ",\"latency_us\":{\"median\":%" PRId64 ",\"worst\":%" PRId64 "},\"findings\":[",
               d->median_us, d->worst_us);
    for (size_t i = 0; i < d->notes.n; i++) {
        json_open(b, NULL, '{');
        json_put_text(b, "grade", grade_name(d->notes.v[i].grade));
        json_put_text(b, "topic", d->notes.v[i].topic);
        json_put_text(b, "text", d->notes.v[i].text);
        buf_char(b, '}');
    }
    buf_char(b, ']');
    json_put_bytes(b, "verdict", verdict.data, verdict.len);
    json_put_text(b, "survives", d->driver ? d->driver->survives : "");
    json_put_text(b, "beware", d->driver && d->driver->beware ? d->driver->beware : "");
    buf_lit(b, "}\n");
    buf_close(&verdict);
}

static int examine(struct doctor *d)
{
    const char *url = cli_url(COMMAND, d->ask.url_given);
    struct hf_fault fault = {0};
    if (!url)
        return EXIT_BAD_USAGE;
    d->driver = cli_driver(url);
    snprintf(d->name, sizeof d->name, "holdfast doctor %s", d->ask.label);
    if ((fault.result = hf_open(url, &d->ask.open, &d->locks, &fault)) != HF_DONE)
        return cli_fail(COMMAND, &fault);
    if (hf_examine(d->locks, add_finding, d, &fault) != HF_DONE)
        addf(d, HF_WARNING, "examination", "The settings cannot be examined: %s.", fault.msg);
    try_lock(d);
    measure(d);
    struct buf b = {0};
    (d->ask.json ? put_json : put_text)(&b, d);
    if (!cli_print(&b))
        return EXIT_NO_BACK_END;
    return d->worst >= HF_WARNING ? EXIT_WARNINGS : EXIT_SUCCESS;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor d = {0};
    int code = EXIT_BAD_USAGE;
    bool ok = ask_parse(&d.ask, COMMAND, argc, argv, "lock timeout json");
    int n = argc - optind;
    if (d.ask.help) {
        fputs(usage, stdout);
        code = EXIT_SUCCESS;
    } else if (ok && (n == 0 || (n == 1 && !d.ask.url_given))) {
        if (n == 1)
            d.ask.url_given = cli_take_secret(argv[optind]);
        code = examine(&d);
    } else if (ok) {
        (void)cli_misused(COMMAND, "expected one URL");
    }
    hf_close(d.locks);
    for (size_t i = 0; i < d.notes.n; i++) {
        free(d.notes.v[i].topic);
        free(d.notes.v[i].text);
    }
    vec_close(&d.notes);
    ask_close(&d.ask);
    return code;
}
