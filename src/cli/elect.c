/* `holdfast elect`: one of many machines runs the command.  Main thread.
 *
 * A candidate becomes the leader, and then a candidate again.  The command runs during a term: it
 * is ended when the leadership is lost, and when it ends by itself the leadership is given up.
 * hf_lock_many waits for a coordinator that is out of reach; only at the start is that an error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "cli/child.h"
#include "cli/common.h"
#include "cli/holders.h"
#include "cli/metrics_listen.h"
#include "cli/observe.h"
#include "cli/options.h"

static const char usage[] =
    "usage: holdfast elect [--lock URL] [OPTION...] NAME -- COMMAND...\n"
    "       holdfast elect [--lock URL] --observe [--json] NAME\n"
    "Waits to be elected among all candidates for NAME, runs COMMAND as the leader, and repeats.\n"
    "With --observe it prints who leads, now and at every change.\n"
    "  --lock URL             the coordinator; default $HOLDFAST_LOCK_URL\n"
    "  --ttl DURATION         TTL of the lease, renewed while COMMAND runs; default 30s\n"
    "  --priority N           the candidate with the largest N goes first; default 0\n"
    "  --max-hold DURATION    the longest term, after which another candidate may lead\n"
    "  --pause DURATION       from the end of a term to the next candidacy; default 1s\n"
    "  --label TEXT           shown by holdfast lock show; default user@host pid\n"
    "  --value TEXT           stored while leading, and shown by --observe; holdfast:// only\n"
    "  --json                 with --observe: print JSON, a line for each change\n"
    "  --on-loss term|kill|warn  what to do when the lock is lost; default term, then kill\n"
    "  --grace DURATION       from TERM to the deadline; default a sixth of the TTL, <= 10s\n"
    "  --metrics-listen ADDRESS:PORT|PATH  serve metrics, for Prometheus\n"
    "  --timeout DURATION     for one exchange with the coordinator; default 2s\n" CLI_LOCK_URLS
    "COMMAND sees HOLDFAST_FENCE, HOLDFAST_LOCK_NAME, HOLDFAST_DEADLINE_MS; see holdfast(1).\n"
    "Runs until a signal ends it.  Exit status: that of COMMAND, or 128+n if none ran; 69 "
    "coordinator\n"
    "unreachable at the start, 64 usage, 126 COMMAND cannot be run, 127 COMMAND not found.\n";

static const char options[] = "lock ttl priority max-hold pause label value observe json on-loss "
                              "grace metrics-listen timeout";

struct elect_candidate {
    struct ask ask;
    struct operands given;
    struct signals signals;
    struct monitor monitor;
    struct metrics_listen *live;
    struct hf_locks *locks;
    bool complained; /* a failure of the coordinator was reported since it last answered */
    int signo;       /* the signal that ended a candidacy */
};

/* The first call opens the coordinator.  Each later call is one candidacy; after HF_DONE, *ret is
 * held. */
static enum hf_result stand(struct elect_candidate *c, struct hf_lock_set **ret,
                            struct hf_fault *fault)
{
    struct interrupts interrupts;
    if (!interrupts_start(&interrupts, &c->signals)) {
        *fault = (struct hf_fault){HF_FAILED, "cannot start a thread"};
        return HF_FAILED;
    }
    struct hf_lock_options want = c->ask.want;
    want.cancel = interrupts.cancel;
    enum hf_result result = HF_DONE;
    if (!c->locks)
        result = hf_open(cli_url("elect", c->ask.url_given), &c->ask.open, &c->locks, fault);
    else
        result = hf_lock_many(c->locks, c->given.names, 1, &want, ret, fault);
    fault->result = result;
    interrupts_stop(&interrupts);
    c->signo = interrupts.signo;
    return result;
}

/* Runs one term.  Returns 0 if another may follow, or else the exit code, where -1 stands for 0. */
static int lead(struct elect_candidate *c, struct hf_lock_set *set)
{
    struct child child = {.command = "elect",
                          .argv = c->given.command,
                          .set = set,
                          .cap_ms = ask_cap_ms(&c->ask, cli_now_ms()),
                          .ending = c->ask.ending,
                          .monitor = &c->monitor,
                          .signals = &c->signals};
    metrics_listen_holds(c->live, c->locks, set);
    bool ran = child_run(&child);
    metrics_listen_holds(c->live, c->locks, NULL);
    (void)!hf_unlock_many(set, NULL);
    if (!ran)
        return EXIT_NOT_RUNNABLE;
    if (child.exec_errno)
        cli_say("elect", "%s: %s", c->given.command[0], strerror(child.exec_errno));
    if (child.exec_errno || child.asked_to_end)
        return child_exit_code(&child) ? child_exit_code(&child) : -1;
    return 0;
}

/* Waits for --pause.  Returns the signal that ended the wait, or 0. */
static int pause_between(struct elect_candidate *c)
{
    int64_t until = cli_now_ms() + c->ask.pause_ms;
    for (int64_t now; (now = cli_now_ms()) < until;) {
        bool from_terminal;
        int signo = signals_next(&c->signals, &from_terminal);
        if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT)
            return signo;
        if (signo == SIGTSTP)
            raise(SIGSTOP);
        struct pollfd fd = {.fd = c->signals.fd, .events = POLLIN};
        wait_files(&fd, 1, (until - now < 1000 ? until - now : 1000) * 1000);
    }
    return 0;
}

static int campaign(struct elect_candidate *c)
{
    struct hf_fault fault = {0};
    struct hf_lock_set *set = NULL;
    if (stand(c, &set, &fault) != HF_DONE && !c->signo) /* opens */
        return cli_fail("elect", &fault);
    struct holders_own own;
    if (!c->signo && holders_find_own(c->locks, cli_url("elect", c->ask.url_given), c->given.names,
                                      1, &c->ask.want, &own)) {
        holders_say_own("elect", &own);
        return EXIT_BAD_USAGE;
    }
    while (!c->signo) {
        metrics_listen_waits(c->live, c->locks);
        enum hf_result result = stand(c, &set, &fault);
        if (c->signo) {
            if (result == HF_DONE)
                (void)!hf_unlock_many(set, NULL);
            break;
        }
        metrics_listen_holds(c->live, c->locks, NULL);
        if (result == HF_DONE) {
            c->complained = false;
            int code = lead(c, set);
            if (code)
                return code < 0 ? EXIT_SUCCESS : code;
        } else if (result == HF_BAD_REQUEST || result == HF_UNSUPPORTED) {
            return cli_fail("elect", &fault);
        } else if (result != HF_TAKEN && !c->complained) {
            cli_fail("elect", &fault);
            c->complained = true;
        }
        c->signo = pause_between(c);
    }
    return EXIT_SIGNAL + c->signo;
}

static int elect(struct elect_candidate *c)
{
    const char *url = cli_url("elect", c->ask.url_given);
    if (!url)
        return EXIT_BAD_USAGE;
    if (cli_is_memory(url))
        cli_say("elect", "memory: exists in this process only, so it excludes no other process");
    if (!signals_block(&c->signals) || !monitor_start(&c->monitor, &c->ask.ending)) {
        cli_say("elect", "cannot start: %s", strerror(errno));
        return EXIT_NOT_RUNNABLE;
    }
    c->live = metrics_listen_start("elect", c->ask.metrics_listen, c->given.names, 1);
    int code = campaign(c);
    metrics_listen_stop(c->live);
    hf_close(c->locks);
    monitor_stop(&c->monitor);
    signals_close(&c->signals);
    return code;
}

/* --observe has no command. */
static bool observes(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--observe") == 0)
            return true;
    return false;
}

static int elect_observe(struct ask *ask, int argc, char **argv)
{
    if (!ask_parse(ask, "elect", argc, argv, options))
        return EXIT_BAD_USAGE;
    if (ask->help)
        return EXIT_SUCCESS;
    if (optind + 1 != argc) {
        cli_say("elect", "expected one NAME after --observe; see holdfast elect --help");
        return EXIT_BAD_USAGE;
    }
    return observe(ask, argv[optind]);
}

int cli_elect(int argc, char **argv)
{
    struct elect_candidate c = {0};
    int code = EXIT_BAD_USAGE;
    if (observes(argc, argv))
        code = elect_observe(&c.ask, argc, argv);
    else if (ask_parse_command(&c.ask, "elect", argc, argv, options, 1, &c.given))
        code = c.ask.help ? EXIT_SUCCESS : elect(&c);
    if (c.ask.help)
        fputs(usage, stdout);
    ask_close(&c.ask);
    return code;
}
