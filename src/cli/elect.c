/* `holdfast elect`: one of many machines runs the command.  Candidate, leader, candidate again: the
 * command is started with each term and ended with it; when it ends by itself the lead is given up.
 * A coordinator that is away for a while is waited for (by hf_lock); only at the start it is an
 * error. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cli/child.h"
#include "cli/common.h"
#include "cli/options.h"

static const char usage[] =
    "usage: holdfast elect [--lock URL] [OPTION...] NAME -- COMMAND...\n"
    "Waits to be elected among all who name NAME, runs COMMAND while leader, and again.\n"
    "  --lock URL             the coordinator; default $HOLDFAST_LOCK_URL\n"
    "  --ttl DURATION         of the lead, renewed while COMMAND runs; default 30s\n"
    "  --priority N           among candidates the larger goes first; default 0\n"
    "  --max-hold DURATION    the longest term: then another may lead\n"
    "  --pause DURATION       between a term's end and the next candidacy; default 1s\n"
    "  --label TEXT           for people who look; default user@host pid\n"
    "  --on-loss term|kill|warn  when the lead is lost; default term, then kill\n"
    "  --grace DURATION       between TERM and the deadline; default a sixth of the TTL, <= 10s\n"
    "  --timeout DURATION     for one exchange with the coordinator; default 2s\n"
    "COMMAND sees HOLDFAST_FENCE, HOLDFAST_LOCK_NAME and HOLDFAST_DEADLINE_MS.\n"
    "Ends with a signal: 128+n when no COMMAND ran, else as COMMAND did.  69 back end\n"
    "unreachable at the start, 64 usage, 126 and 127 COMMAND cannot be run or found.\n";

static const struct option options[] = {{"lock", required_argument, NULL, ASK_LOCK},
                                        {"ttl", required_argument, NULL, ASK_TTL},
                                        {"priority", required_argument, NULL, ASK_PRIORITY},
                                        {"max-hold", required_argument, NULL, ASK_MAX_HOLD},
                                        {"pause", required_argument, NULL, ASK_PAUSE},
                                        {"label", required_argument, NULL, ASK_LABEL},
                                        {"on-loss", required_argument, NULL, ASK_ON_LOSS},
                                        {"grace", required_argument, NULL, ASK_GRACE},
                                        {"timeout", required_argument, NULL, ASK_TIMEOUT},
                                        {"help", no_argument, NULL, ASK_HELP},
                                        {0}};

struct candidate {
    struct ask ask;
    const char *name;
    char **command;
    struct signals signals;
    struct monitor monitor;
    struct hf_locks *locks;
    bool complained; /* of the coordinator, since it last answered */
    int signo;       /* that ended a candidacy */
};

/* One candidacy.  HF_DONE: *ret is ours. */
static enum hf_result stand(struct candidate *c, struct hf_lock **ret, struct hf_fault *fault)
{
    struct interrupts interrupts;
    if (!interrupts_start(&interrupts, &c->signals)) {
        *fault = (struct hf_fault){HF_FAILED, "cannot start a thread"};
        return HF_FAILED;
    }
    struct hf_lock_options want = c->ask.want;
    want.stop = &interrupts.stop;
    enum hf_result result = HF_DONE;
    if (!c->locks)
        result = hf_open(cli_url("elect", c->ask.url_given), &c->ask.open, &c->locks, fault);
    else
        result = hf_lock(c->locks, c->name, &want, ret, fault);
    fault->result = result;
    interrupts_stop(&interrupts);
    c->signo = interrupts.signo;
    return result;
}

/* 0: another term may come; else the exit code. */
static int lead(struct candidate *c, struct hf_lock *lock)
{
    struct child child = {.command = "elect",
                          .argv = c->command,
                          .lock = lock,
                          .cap_ms = ask_cap_ms(&c->ask, cli_now_ms()),
                          .ending = c->ask.ending,
                          .monitor = &c->monitor,
                          .signals = &c->signals};
    bool ran = child_run(&child);
    hf_unlock(lock, NULL);
    if (!ran)
        return EXIT_NOT_RUNNABLE;
    if (child.exec_errno)
        cli_say("elect", "%s: %s", c->command[0], strerror(child.exec_errno));
    if (child.exec_errno || child.asked_to_end)
        return child_exit_code(&child) ? child_exit_code(&child) : -1;
    return 0;
}

/* 0, or the signal that ended it. */
static int pause_between(struct candidate *c)
{
    int64_t until = cli_now_ms() + c->ask.pause_ms;
    for (int64_t now; (now = cli_now_ms()) < until;) {
        bool kernel;
        int signo = signals_next(&c->signals, &kernel);
        if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT)
            return signo;
        if (signo == SIGTSTP)
            raise(SIGSTOP);
        struct pollfd fd = {.fd = c->signals.fd, .events = POLLIN};
        poll(&fd, 1, until - now < 1000 ? (int)(until - now) : 1000);
    }
    return 0;
}

static int campaign(struct candidate *c)
{
    struct hf_fault fault = {0};
    struct hf_lock *lock = NULL;
    if (stand(c, &lock, &fault) != HF_DONE && !c->signo) /* opens */
        return cli_fail("elect", &fault);
    while (!c->signo) {
        enum hf_result result = stand(c, &lock, &fault);
        if (c->signo) {
            if (result == HF_DONE)
                hf_unlock(lock, NULL);
            break;
        }
        if (result == HF_DONE) {
            c->complained = false;
            int code = lead(c, lock);
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

static int elect(struct candidate *c)
{
    const char *url = cli_url("elect", c->ask.url_given);
    if (!url)
        return EXIT_BAD_USAGE;
    if (cli_is_memory(url))
        cli_say("elect", "memory: keeps nobody out who is not in this very process");
    if (!signals_block(&c->signals) || !monitor_start(&c->monitor, &c->ask.ending)) {
        cli_say("elect", "cannot start: %s", strerror(errno));
        return EXIT_NOT_RUNNABLE;
    }
    int code = campaign(c);
    hf_close(c->locks);
    monitor_stop(&c->monitor);
    signals_close(&c->signals);
    return code;
}

int cli_elect(int argc, char **argv)
{
    struct candidate c = {0};
    int code = EXIT_BAD_USAGE;
    if (ask_parse_command(&c.ask, "elect", argc, argv, ":h", options, &c.name, &c.command))
        code = c.ask.help ? EXIT_SUCCESS : elect(&c);
    if (c.ask.help)
        fputs(usage, stdout);
    ask_close(&c.ask);
    return code;
}
