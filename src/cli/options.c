/* See options.h.  Main thread. */
#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cli/common.h"
#include "cli/metrics_listen.h"

/* The longest default grace: enough for most programs to clean up. */
#define GRACE_DEFAULT_MS 10000
#define TTL_DEFAULT_MS 30000

static bool parse_on_loss(struct ask *ask, const char *text)
{
    static const char *const names[] = {"term", "kill", "warn"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            ask->ending.on_loss = (enum on_loss)i;
            return true;
        }
    cli_say(ask->command, "--on-loss: %.40s is not term, kill or warn", text);
    return false;
}

static bool parse_label(struct ask *ask, const char *text)
{
    size_t len = strlen(text);
    if (len >= sizeof ask->label) {
        cli_say(ask->command, "--label: at most %zu bytes", sizeof ask->label - 1);
        return false;
    }
    memcpy(ask->label, text, len + 1);
    return true;
}

static bool parse_number(struct ask *ask, int option, const char *text)
{
    const char *command = ask->command;
    int64_t n = 0;
    switch (option) {
    case ASK_RETRY:
        ask->has_retries = true;
        if (!cli_integer(command, "--retry", text, 0, 1000000, &n))
            return false;
        ask->want.retries = (int)n;
        return true;
    case ASK_SLOTS:
        if (!cli_integer(command, "--slots", text, 1, 1000000, &n))
            return false;
        ask->want.slots = (unsigned)n;
        return true;
    case ASK_PRIORITY:
        if (!cli_integer(command, "--priority", text, -1000000, 1000000, &n))
            return false;
        ask->want.priority = (int)n;
        return true;
    default:
        if (!cli_integer(command, "-E", text, 0, 255, &n))
            return false;
        ask->not_acquired_code = (int)n;
        return true;
    }
}

static bool parse_one(struct ask *ask, int option, char *text)
{
    const char *command = ask->command;
    switch (option) {
    case ASK_LOCK:
        free(ask->url_given);
        ask->url_given = cli_take_secret(text);
        return true;
    case ASK_TTL:
        return cli_duration(command, "--ttl", text, 1, &ask->want.ttl_ms);
    case ASK_WAIT:
        ask->has_wait = true;
        return cli_duration(command, "--wait", text, 0, &ask->want.wait_ms);
    case 'n':
        ask->no_wait = true;
        return true;
    case ASK_RETRY:
    case ASK_SLOTS:
    case ASK_PRIORITY:
    case 'E':
        return parse_number(ask, option, text);
    case ASK_RETRY_DELAY:
        return cli_duration(command, "--retry-delay", text, 1, &ask->want.retry_ms);
    case ASK_SHARED:
        ask->want.mode = HF_SHARED;
        return true;
    case ASK_MAX_HOLD:
        return cli_duration(command, "--max-hold", text, 1, &ask->want.max_hold_ms);
    case ASK_AT_LEAST:
        return cli_duration(command, "--at-least", text, 0, &ask->at_least_ms);
    case ASK_LABEL:
        return parse_label(ask, text);
    case ASK_ON_LOSS:
        return parse_on_loss(ask, text);
    case ASK_GRACE:
        ask->has_grace = true;
        return cli_duration(command, "--grace", text, 0, &ask->ending.grace_ms);
    case ASK_METRICS_FILE:
        ask->metrics_path = text;
        return true;
    case ASK_METRICS_LISTEN:
        ask->metrics_listen = text;
        return true;
    case ASK_TIMEOUT:
        return cli_duration(command, "--timeout", text, 1, &ask->open.timeout_ms);
    case ASK_PAUSE:
        return cli_duration(command, "--pause", text, 1, &ask->pause_ms);
    case ASK_OWNER:
        ask->owner = text;
        return true;
    case ASK_VALUE:
        ask->want.value = text;
        return true;
    case ASK_OBSERVE:
        return ask->observe = true;
    case ASK_JSON:
        return ask->json = true;
    case ASK_HELP:
        return ask->help = true;
    default:
        return false; /* cli_option has written a message */
    }
}

/* Checks combinations of options, and sets defaults that depend on other options. */
static bool check_combinations(struct ask *ask)
{
    struct hf_lock_options *want = &ask->want;
    const char *wrong = NULL;
    if (ask->no_wait && ask->has_wait)
        wrong = "-n and --wait exclude each other";
    else if (want->mode == HF_SHARED && want->slots > 1)
        wrong = "--shared and --slots exclude each other";
    else if (want->max_hold_ms && ask->at_least_ms > want->max_hold_ms)
        wrong = "--at-least is longer than --max-hold";
    else if (ask->metrics_listen && !metrics_listen_check(ask->command, ask->metrics_listen))
        return false;
    else if (ask->has_grace && ask->ending.grace_ms > want->ttl_ms / 2)
        wrong = "--grace is more than half of the TTL, which leaves no time to renew";
    if (wrong) {
        cli_say(ask->command, "%s", wrong);
        return false;
    }
    if (!ask->has_wait)
        want->wait_ms = HF_FOREVER;
    if (ask->no_wait || (ask->has_retries && want->retries == 0 && !ask->has_wait))
        want->wait_ms = 0;
    if (!ask->has_grace) {
        int64_t sixth = want->ttl_ms / 6;
        ask->ending.grace_ms = sixth < GRACE_DEFAULT_MS ? sixth : GRACE_DEFAULT_MS;
    }
    return true;
}

int64_t ask_cap_ms(const struct ask *ask, int64_t granted_ms)
{
    if (!ask->want.max_hold_ms)
        return INT64_MAX;
    return granted_ms + ask->want.max_hold_ms + ending_lead_ms(&ask->ending);
}

bool ask_parse(struct ask *ask, const char *command, int argc, char **argv,
               const char *short_options, const struct option *options)
{
    *ask = (struct ask){.command = command,
                        .open = HF_OPTIONS_INIT,
                        .want = HF_LOCK_OPTIONS(.ttl_ms = TTL_DEFAULT_MS),
                        .pause_ms = 1000,
                        .not_acquired_code = EXIT_NOT_ACQUIRED};
    cli_default_label(ask->label);
    optind = 0; /* glibc: from the start */
    for (int option; (option = cli_option(command, argc, argv, short_options, options)) != -1;)
        if (!parse_one(ask, option == 'h' ? ASK_HELP : option, optarg))
            return false;
    ask->want.label = ask->label;
    ask->want.on_outage = cli_outage;
    ask->want.ctx = (void *)(uintptr_t)command;
    return ask->help || check_combinations(ask);
}

void ask_close(struct ask *ask)
{
    free(ask->url_given);
    ask->url_given = NULL;
}

/* The index of "--"; 0 if it is not there. */
static int find_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return i;
    return 0;
}

bool ask_parse_command(struct ask *ask, const char *command, int argc, char **argv,
                       const char *short_options, const struct option *options, size_t names_max,
                       struct operands *ret)
{
    int dashes = find_dashes(argc, argv);
    if (!ask_parse(ask, command, dashes ? dashes : argc, argv, short_options, options))
        return false;
    if (ask->help)
        return true;
    if (!dashes || optind >= dashes || (size_t)(dashes - optind) > names_max ||
        dashes + 1 >= argc) {
        if (names_max == 1)
            cli_say(command, "expected one NAME, then --, then the command; see holdfast %s --help",
                    command);
        else
            cli_say(command,
                    "expected 1 to %zu NAMEs, then --, then the command; see holdfast %s --help",
                    names_max, command);
        return false;
    }
    *ret = (struct operands){.names = (const char *const *)argv + optind,
                             .n_names = (size_t)(dashes - optind),
                             .command = argv + dashes + 1};
    return true;
}
