/* `holdfast lock`: leases for scripts (get, renew, release), and commands for operators (ls, show,
 * break).  Main thread. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "base/status.h"
#include "cli/child.h"
#include "cli/common.h"
#include "cli/holders.h"
#include "cli/options.h"
#include "cli/render.h"

static const char usage[] =
    "usage: holdfast lock get NAME [OPTION...]\n"
    "       holdfast lock renew NAME --owner TOKEN [--ttl DURATION]\n"
    "       holdfast lock release NAME --owner TOKEN\n"
    "       holdfast lock ls [PREFIX]\n"
    "       holdfast lock show NAME\n"
    "       holdfast lock break NAME\n"
    "get prints the owner's token, the fence and, with --slots, the slot.  Only `lock renew` "
    "renews\n"
    "the lease.\n"
    "  --lock URL             the coordinator; default $HOLDFAST_LOCK_URL\n"
    "  --ttl DURATION         TTL of the lease; default 30s\n"
    "  --wait DURATION        how long to wait for the lock; default for ever\n"
    "  -n                     do not wait\n"
    "  --retry COUNT          try COUNT more times instead of waiting in the queue\n"
    "  --retry-delay DURATION pause between tries; default 100ms\n"
    "  --shared, --slots N, --priority N, --label TEXT   as for holdfast run\n"
    "  --owner TOKEN          the token that get printed\n"
    "  -E CODE                exit code if the lock is not acquired; default 75\n"
    "  --timeout DURATION     for one exchange with the coordinator; default 2s\n"
    "  --json                 print JSON\n" CLI_LOCK_URLS
    "Exit status: 0; 75 not acquired, 76 not held by this owner, 69 coordinator unreachable,\n"
    "64 usage.\n";

static const char options[] =
    "lock ttl wait n retry retry-delay shared slots priority label owner E timeout json";

struct lock_arguments {
    struct ask ask;
    const char *name; /* "" for ls without a prefix */
    struct signals signals;
    int signo; /* the signal that ended the wait; 0 if none did */
    bool said_why;
    struct hf_locks *locks;
    char got[33]; /* the owner of the lease that get took; "" if it took none */
    struct buf out;
};

/* ---- leases ---- */

static void put_grant(struct lock_arguments *c, const struct hf_grant *grant)
{
    if (!c->ask.json) {
        buf_printf(&c->out, "%s %" PRId64, grant->owner, grant->fence);
        if (c->ask.want.slots > 1)
            buf_printf(&c->out, " %" PRId64, grant->slot);
        buf_char(&c->out, '\n');
        return;
    }
    buf_lit(&c->out, "{\"object\":\"lock\"");
    json_put_text(&c->out, "name", c->name);
    json_put_text(&c->out, "owner", grant->owner);
    json_put_int(&c->out, "fence", grant->fence);
    json_put_int(&c->out, "slot", grant->slot);
    json_put_int(&c->out, "expires_in_ms", grant->remaining_ms);
    buf_lit(&c->out, "}\n");
}

/* An interrupted get leaves neither a place in the queue nor a lease whose token was not printed.
 */
static enum hf_result get(struct lock_arguments *c, struct hf_fault *fault)
{
    struct hf_grant grant = HF_GRANT_INIT;
    struct interrupts interrupts;
    const struct hf_lock_options *want = &c->ask.want;
    struct holders_own own;
    if ((want->wait_ms || want->retries) &&
        holders_find_own(c->locks, cli_url("lock", c->ask.url_given), &c->name, 1, want, &own)) {
        holders_say_own("lock", &own);
        c->said_why = true;
        return HF_BAD_REQUEST;
    }
    if (!interrupts_start(&interrupts, &c->signals)) {
        *fault = (struct hf_fault){HF_FAILED, "cannot start a thread"};
        return HF_FAILED;
    }
    c->ask.want.cancel = interrupts.cancel;
    enum hf_result r = hf_lease_get(c->locks, c->name, &c->ask.want, &grant, fault);
    interrupts_stop(&interrupts);
    c->ask.want.cancel = NULL;
    c->signo = interrupts.signo;
    if (r == HF_DONE && c->signo)
        (void)!hf_lease_release(c->locks, c->name, grant.owner, NULL);
    else if (r == HF_DONE)
        put_grant(c, &grant);
    if (r == HF_DONE && !c->signo)
        memcpy(c->got, grant.owner, sizeof c->got);
    return r;
}

static enum hf_result renew(struct lock_arguments *c, struct hf_fault *fault)
{
    struct hf_grant grant = HF_GRANT_INIT;
    enum hf_result r =
        hf_lease_renew(c->locks, c->name, c->ask.owner, c->ask.want.ttl_ms, &grant, fault);
    if (r == HF_DONE)
        put_grant(c, &grant);
    return r;
}

static enum hf_result release(struct lock_arguments *c, struct hf_fault *fault)
{
    return hf_lease_release(c->locks, c->name, c->ask.owner, fault);
}

/* ---- commands for operators ---- */

static const char *mode_name(enum hf_mode mode)
{
    return mode == HF_SHARED ? "shared" : "exclusive";
}

static void put_people_json(struct buf *b, const char *key, const struct hf_holder *const *people,
                            size_t n, bool waiting)
{
    json_open(b, key, '[');
    for (size_t i = 0; i < n; i++) {
        const struct hf_holder *h = people[i];
        json_open(b, NULL, '{');
        json_put_text(b, "owner", h->owner);
        json_put_text(b, "label", h->label);
        json_put_text(b, "mode", mode_name(h->mode));
        json_put_int(b, "priority", h->priority);
        if (!waiting) {
            json_put_int(b, "fence", h->fence);
            json_put_int(b, "slot", h->slot);
            json_put_int(b, "expires_in_ms", h->remaining_ms);
        }
        if (!waiting && h->held_ms >= 0)
            json_put_int(b, "held_ms", h->held_ms);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

static void put_state_json(struct buf *b, const char *name, const struct hf_lock_state *state)
{
    json_open(b, NULL, '{');
    json_put_text(b, "object", "lock");
    json_put_text(b, "name", name);
    json_put_int(b, "last_fence", state->last_fence);
    put_people_json(b, "holders", state->holders, state->n_holders, false);
    put_people_json(b, "waiters", state->waiters, state->n_waiters, true);
    buf_char(b, '}');
}

static void put_state(struct buf *b, const char *name, const struct hf_lock_state *state)
{
    render_text(b, name, strlen(name));
    buf_printf(b, ": %s, %zu waiting, last fence %" PRId64 "\n", state->n_holders ? "held" : "free",
               state->n_waiters, state->last_fence);
    for (size_t i = 0; i < state->n_holders; i++) {
        const struct hf_holder *h = state->holders[i];
        buf_printf(b, "  holder %s %s fence %" PRId64 " for %" PRId64 " ms  ", h->owner,
                   mode_name(h->mode), h->fence, h->remaining_ms);
        render_text(b, h->label, strlen(h->label));
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < state->n_waiters; i++) {
        const struct hf_holder *h = state->waiters[i];
        buf_printf(b, "  waiter %s %s priority %d  ", h->owner, mode_name(h->mode), h->priority);
        render_text(b, h->label, strlen(h->label));
        buf_char(b, '\n');
    }
}

static enum hf_result show(struct lock_arguments *c, struct hf_fault *fault)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    enum hf_result r = hf_inspect(c->locks, c->name, &state, fault);
    if (r != HF_DONE)
        return r;
    (c->ask.json ? put_state_json : put_state)(&c->out, c->name, &state);
    buf_str(&c->out, c->ask.json ? "\n" : "");
    hf_lock_state_close(&state);
    return HF_DONE;
}

struct lock_names {
    char **v;
    size_t n, cap;
};

static bool add_name(void *ctx, const char *name)
{
    struct lock_names *names = ctx;
    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 64;
        names->v = hf_realloc(names->v, names->cap * sizeof *names->v);
    }
    names->v[names->n++] = hf_strndup(name, strlen(name));
    return true;
}

/* Prints names alone, for a loop in a shell; JSON has the state of each lock, read one after the
 * other. */
static enum hf_result list(struct lock_arguments *c, struct hf_fault *fault)
{
    struct lock_names names = {0};
    enum hf_result r = hf_list(c->locks, c->name, add_name, &names, fault);
    buf_str(&c->out, c->ask.json ? "[" : "");
    for (size_t i = 0; i < names.n && r == HF_DONE; i++) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        if (c->ask.json && (r = hf_inspect(c->locks, names.v[i], &state, fault)) == HF_DONE) {
            put_state_json(&c->out, names.v[i], &state);
            hf_lock_state_close(&state);
        } else if (!c->ask.json) {
            buf_printf(&c->out, "%s\n", names.v[i]);
        }
    }
    buf_str(&c->out, c->ask.json ? "]\n" : "");
    for (size_t i = 0; i < names.n; i++)
        free(names.v[i]);
    free(names.v);
    return r;
}

static enum hf_result break_it(struct lock_arguments *c, struct hf_fault *fault)
{
    return hf_break(c->locks, c->name, fault);
}

/* ---- the command line ---- */

static const struct verb {
    const char *name;
    enum hf_result (*call)(struct lock_arguments *c, struct hf_fault *fault);
    bool needs_owner;
    bool is_detached; /* the lease lives on after this process */
} verbs[] = {
    {"get", get, false, true},  {"renew", renew, true, true}, {"release", release, true, true},
    {"ls", list, false, false}, {"show", show, false, false}, {"break", break_it, false, false},
};

/* If the token cannot be printed, no caller could release the lease, so it is released here. */
static int print(struct lock_arguments *c)
{
    if (cli_print(&c->out))
        return EXIT_SUCCESS;
    cli_say("lock", "cannot write to standard output: %s", strerror(errno));
    if (c->got[0])
        (void)!hf_lease_release(c->locks, c->name, c->got, NULL);
    return EXIT_NO_BACK_END;
}

/* Prints the output of a call that succeeded, or a message, and returns the exit code. */
static int exit_code_of(struct lock_arguments *c, const struct hf_fault *fault)
{
    if (c->signo)
        return EXIT_SIGNAL + c->signo;
    if (fault->result == HF_DONE)
        return print(c);
    if (fault->result != HF_TAKEN)
        return c->said_why ? cli_exit_code(fault->result) : cli_fail("lock", fault);
    if (c->ask.not_acquired_code)
        holders_say_taken("lock", c->locks, &c->name, 1);
    return c->ask.not_acquired_code;
}

/* Returns false, with a message, if the verb makes no sense on this coordinator. */
static bool check_url(const char *url, const struct verb *verb)
{
    const struct hf_driver_info *driver = cli_driver(url);
    if (cli_is_memory(url))
        cli_say("lock", "memory: exists in this process only, and ends with it");
    else if (driver && verb->is_detached && !driver->outlives)
        cli_say("lock",
                "a lease on %s ends with the process that took it, so a script cannot keep one; "
                "use holdfast run",
                driver->name);
    else
        return true;
    return false;
}

static int call_verb(struct lock_arguments *c, const struct verb *verb)
{
    const char *url = cli_url("lock", c->ask.url_given);
    if (!url || !check_url(url, verb))
        return EXIT_BAD_USAGE;
    if (verb->needs_owner != (c->ask.owner != NULL)) {
        cli_say("lock", verb->needs_owner ? "%s needs --owner" : "%s takes no --owner", verb->name);
        return EXIT_BAD_USAGE;
    }
    if (verb->call == get && !signals_block(&c->signals)) {
        cli_say("lock", "cannot block signals");
        return EXIT_NO_BACK_END;
    }
    struct hf_fault fault = {0};
    fault.result = hf_open(url, &c->ask.open, &c->locks, &fault);
    if (fault.result == HF_DONE)
        fault.result = verb->call(c, &fault);
    int code = exit_code_of(c, &fault);
    hf_close(c->locks);
    if (verb->call == get)
        signals_close(&c->signals);
    buf_close(&c->out);
    return code;
}

static int unknown_verb(const char *given)
{
    const char *names[sizeof verbs / sizeof *verbs];
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        names[i] = verbs[i].name;
    return cli_unknown("lock", "verb", given, names, sizeof verbs / sizeof *verbs);
}

int cli_lock(int argc, char **argv)
{
    struct lock_arguments c = {0};
    bool ok = ask_parse(&c.ask, "lock", argc, argv, options);
    int code = EXIT_BAD_USAGE, n = argc - optind;
    const struct verb *verb = NULL;
    for (size_t i = 0; ok && n > 0 && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[optind], verbs[i].name) == 0)
            verb = &verbs[i];
    if (c.ask.help) {
        fputs(usage, stdout);
        code = EXIT_SUCCESS;
    } else if (verb && (n == 2 || (n == 1 && verb->call == list))) {
        c.name = n == 2 ? argv[optind + 1] : "";
        code = call_verb(&c, verb);
    } else if (ok && verb) {
        code = cli_misused("lock",
                           verb->call == list ? "%s takes at most one PREFIX" : "%s takes one NAME",
                           verb->name);
    } else if (ok) {
        code = unknown_verb(n > 0 ? argv[optind] : NULL);
    }
    ask_close(&c.ask);
    return code;
}
