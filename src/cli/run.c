/* `holdfast run`: runs a command while holding a lock, or several as a set.  Main thread.
 *
 *   block signals - fork the monitor - hf_open, hf_lock_many - child_run - --at-least -
 *   hf_unlock_many
 *
 * The order matters: the monitor is forked while this process has one thread, and before the
 * library has allocated or opened anything in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "cli/child.h"
#include "cli/common.h"
#include "cli/holders.h"
#include "cli/metrics_file.h"
#include "cli/metrics_listen.h"
#include "cli/options.h"

static const char usage[] =
    "usage: holdfast run [--lock URL] [OPTION...] NAME... -- COMMAND...\n"
    "Runs COMMAND while holding the lock NAME; of several NAMEs, all or none.\n"
    "  --lock URL             the coordinator; default $HOLDFAST_LOCK_URL\n"
    "  --ttl DURATION         TTL of the lease, renewed while COMMAND runs; default 30s\n"
    "  --wait DURATION        how long to wait for the lock, outages included; default for ever;\n"
    "                         a coordinator that cannot be reached at the start fails at once\n"
    "  -n                     do not wait\n"
    "  --retry COUNT          try COUNT more times instead of waiting in the queue\n"
    "  --retry-delay DURATION pause between tries; default 100ms\n"
    "  --shared               hold the lock together with other shared holders\n"
    "  --slots N              allow N holders at once\n"
    "  --priority N           the waiter with the largest N goes first; default 0\n"
    "  --max-hold DURATION    end COMMAND when it has held the lock for this long\n"
    "  --at-least DURATION    keep the lock for this long even if COMMAND ends sooner\n"
    "  --label TEXT           shown by holdfast lock show; default user@host pid\n"
    "  --on-loss term|kill|warn  what to do when the lock is lost; default term, then kill\n"
    "  --grace DURATION       from TERM to the deadline; default a sixth of the TTL, <= 10s\n"
    "  -E CODE                exit code if the lock is not acquired; default 75\n"
    "  --metrics-file PATH    write what happened, for node-exporter\n"
    "  --metrics-listen ADDRESS:PORT|PATH  serve metrics meanwhile, for Prometheus\n"
    "  --timeout DURATION     for one exchange with the coordinator; default 2s\n"
    "A DURATION is 500ms, 30s, 1.5m, 2m30s, 2h or 1d; a bare number is seconds.\n" CLI_LOCK_URLS
    "COMMAND sees HOLDFAST_FENCE, HOLDFAST_LOCK_NAME, HOLDFAST_DEADLINE_MS; see holdfast(1).\n"
    "Exit status: that of COMMAND; 75 not acquired, 76 lost while COMMAND ran, 69 coordinator\n"
    "unreachable, 64 usage, 126 COMMAND cannot be run, 127 COMMAND not found, 128+n signal n.\n";

static const char options[] =
    "lock ttl wait n retry retry-delay shared slots priority max-hold at-least label on-loss grace "
    "E metrics-file metrics-listen timeout";

struct run {
    struct ask ask;
    struct operands given;
    struct buf names; /* for messages */
    struct signals signals;
    struct monitor monitor;
    struct metrics_listen *live;
    struct hf_locks *locks;
    struct hf_lock_set *set;
    bool said_why; /* a message has said why the locks were not acquired */
    struct run_report report;
    int64_t granted_ms; /* boot-time */
};

/* Takes the locks.  Returns HF_BAD_REQUEST if the wait could never end. */
static enum hf_result take(struct run *r, const struct hf_cancel *cancel, struct hf_fault *fault)
{
    struct hf_lock_options want = r->ask.want;
    struct holders_own own;
    if ((want.wait_ms || want.retries) &&
        holders_find_own(r->locks, cli_url("run", r->ask.url_given), r->given.names,
                         r->given.n_names, &want, &own)) {
        holders_say_own("run", &own);
        r->said_why = true;
        return HF_BAD_REQUEST;
    }
    want.cancel = cancel;
    /* The library would count the time of each lock from its own grant, and so end the first ones
     * while the last one is waited for.  child_run counts from the last grant. */
    if (r->given.n_names > 1)
        want.max_hold_ms = 0;
    metrics_listen_waits(r->live, r->locks);
    return hf_lock_many(r->locks, r->given.names, r->given.n_names, &want, &r->set, fault);
}

/* Opens the coordinator and waits for the locks. */
static void open_and_take(struct run *r, const char *url, const struct hf_cancel *cancel,
                          struct hf_fault *fault)
{
    int64_t began = cli_now_ms();
    fault->result = hf_open(url, &r->ask.open, &r->locks, fault);
    if (fault->result == HF_DONE)
        fault->result = take(r, cancel, fault);
    r->granted_ms = cli_now_ms();
    r->report.wait_ms = r->granted_ms - began;
}

/* Returns 0 once the locks are held, or the exit code of a failure. */
static int acquire(struct run *r)
{
    const char *url = cli_url("run", r->ask.url_given);
    if (url && cli_is_memory(url))
        cli_say("run", "memory: exists in this process only, so it excludes no other process");
    if (!url)
        return EXIT_BAD_USAGE;
    struct interrupts interrupts;
    if (!interrupts_start(&interrupts, &r->signals)) {
        cli_say("run", "cannot start a thread: %s", strerror(errno));
        return EXIT_NO_BACK_END;
    }
    struct hf_fault fault = {0};
    open_and_take(r, url, interrupts.cancel, &fault);
    interrupts_stop(&interrupts);
    if (interrupts.signo) {
        metrics_listen_idle(r->live);
        (void)!hf_unlock_many(r->set, NULL);
        r->set = NULL;
        return EXIT_SIGNAL + interrupts.signo;
    }
    if (fault.result == HF_DONE)
        return 0;
    if (fault.result != HF_TAKEN)
        return r->said_why ? cli_exit_code(fault.result) : cli_fail("run", &fault);
    if (r->ask.not_acquired_code) /* with -E 0 it is no failure, and cron would mail the message */
        holders_say_taken("run", r->locks, r->given.names, r->given.n_names);
    return r->ask.not_acquired_code;
}

/* Waits for the rest of --at-least, or until a signal ends that.  Returns false if a lock was lost
 * meanwhile. */
static bool wait_at_least(struct run *r)
{
    int64_t until = r->granted_ms + r->ask.at_least_ms;
    for (int64_t now; (now = cli_now_ms()) < until;) {
        bool from_terminal;
        int signo = signals_next(&r->signals, &from_terminal);
        if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT)
            return true;
        if (signo == SIGTSTP && from_terminal)
            raise(SIGSTOP);
        if (!held_all(r->set))
            return false;
        struct pollfd fds[1 + HELD_MAX] = {{.fd = r->signals.fd, .events = POLLIN}};
        size_t n = 1 + held_files(r->set, fds + 1);
        wait_files(fds, (nfds_t)n, (until - now < 1000 ? until - now : 1000) * 1000);
    }
    return true;
}

/* Gives the locks back.  Returns false, with a message, if one of them had been lost. */
static bool release(struct run *r)
{
    struct hf_fault fault = {0};
    metrics_listen_holds(r->live, r->locks, NULL);
    enum hf_result result = hf_unlock_many(r->set, &fault);
    r->set = NULL;
    r->report.held_ms = cli_now_ms() - r->granted_ms;
    if (result != HF_DONE && result != HF_LOST)
        cli_say("run", "the lock on %s could not be released and ends with its TTL: %s",
                r->names.data, fault.msg);
    return result != HF_LOST;
}

static int run_command(struct run *r)
{
    struct child child = {.command = "run",
                          .argv = r->given.command,
                          .set = r->set,
                          .slots = r->ask.want.slots,
                          .cap_ms = ask_cap_ms(&r->ask, r->granted_ms),
                          .ending = r->ask.ending,
                          .monitor = &r->monitor,
                          .signals = &r->signals};
    if (!child_run(&child))
        return EXIT_NOT_RUNNABLE;
    int code = child_exit_code(&child);
    if (child.exec_errno)
        cli_say("run", "%s: %s", r->given.command[0], strerror(child.exec_errno));
    else if (!child.lost && !child.asked_to_end && !wait_at_least(r))
        cli_say("run", "the lock on %s was lost before the time of --at-least had passed",
                held_weakest(r->set));
    bool was_held = held_all(r->set);
    if (!release(r) && !child.lost && was_held && !child.exec_errno) {
        cli_say("run", "the lock on %s was lost while the command ran", r->names.data);
        child.lost = true;
    }
    r->report.lost = child.lost;
    return child.lost ? EXIT_LOST : code;
}

/* The set is in the order of names, and the report in that of the command line. */
static void report_grants(struct run *r)
{
    struct hf_lock *lock;
    r->report.acquired = true;
    for (size_t i = 0; (lock = hf_lock_set_at(r->set, i)); i++)
        for (size_t k = 0; k < r->given.n_names; k++)
            if (strcmp(hf_lock_name(lock), r->given.names[k]) == 0)
                r->report.fences[k] = hf_lock_fence(lock);
}

static int run(struct run *r)
{
    r->report = (struct run_report){.names = r->given.names,
                                    .n_names = r->given.n_names,
                                    .began_ms = clock_wall_us(&clock_system) / 1000,
                                    .stats = HF_STATS_INIT};
    held_put_names(&r->names, r->given.names, r->given.n_names);
    if (!signals_block(&r->signals)) {
        cli_say("run", "cannot block signals: %s", strerror(errno));
        return EXIT_NOT_RUNNABLE;
    }
    if (!monitor_start(&r->monitor, &r->ask.ending)) {
        cli_say("run", "cannot start the monitor: %s", strerror(errno));
        return EXIT_NOT_RUNNABLE;
    }
    r->live = metrics_listen_start("run", r->ask.metrics_listen, r->given.names, r->given.n_names);
    int code = acquire(r);
    if (r->set) {
        metrics_listen_holds(r->live, r->locks, r->set);
        report_grants(r);
        code = run_command(r);
    }
    if (r->locks)
        (void)!hf_stats(r->locks, &r->report.stats, NULL);
    metrics_listen_stop(r->live);
    hf_close(r->locks);
    monitor_stop(&r->monitor);
    signals_close(&r->signals);
    r->report.exit_code = code;
    if (r->ask.metrics_path && !metrics_file_write(r->ask.metrics_path, &r->report))
        cli_say("run", "%s: %s", r->ask.metrics_path, strerror(errno));
    return code;
}

int cli_run(int argc, char **argv)
{
    struct run r = {0};
    int code = EXIT_BAD_USAGE;
    if (ask_parse_command(&r.ask, "run", argc, argv, options, HELD_MAX, &r.given))
        code = r.ask.help ? EXIT_SUCCESS : run(&r);
    if (r.ask.help)
        fputs(usage, stdout);
    buf_close(&r.names);
    ask_close(&r.ask);
    return code;
}
