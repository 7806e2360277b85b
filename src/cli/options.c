/* See options.h.  Main thread. */
#include "cli/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cli/common.h"
#include "cli/metrics_listen.h"

/* The longest default grace: enough for most programs to clean up. */
#define GRACE_DEFAULT_MS 10000
#define TTL_DEFAULT_MS 30000

static bool take_on_loss(void *to, char *text)
{
    static const char *const names[] = {"term", "kill", "warn"};
    struct ask *ask = to;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            ask->ending.on_loss = (enum on_loss)i;
            return true;
        }
    cli_say(ask->command, "--on-loss: %.40s is not term, kill or warn", text);
    return false;
}

static bool take_label(void *to, char *text)
{
    struct ask *ask = to;
    size_t len = strlen(text);
    if (len >= sizeof ask->label) {
        cli_say(ask->command, "--label: at most %zu bytes", sizeof ask->label - 1);
        return false;
    }
    memcpy(ask->label, text, len + 1);
    return true;
}

/* Returns an exit code, or -1; ask->help says whether --help was among the options. */
static int read_options(struct ask *ask, int argc, char **argv, const char *names)
{
    struct hf_lock_options *want = &ask->want;
    const struct cli_option all[] = {
        {"lock", CLI_SECRET, .to = &ask->url_given},
        {"ttl", CLI_DURATION, .to = &want->ttl_ms, .least = 1},
        {"wait", CLI_DURATION, .to = &want->wait_ms},
        {"n", CLI_TRUE, .to = &ask->no_wait},
        {"retry", CLI_INT, .to = &want->retries, .most = 1000000},
        {"retry-delay", CLI_DURATION, .to = &want->retry_ms, .least = 1},
        {"shared", CLI_TRUE, .to = &ask->shared},
        {"slots", CLI_INT, .to = &want->slots, .least = 1, .most = 1000000},
        {"priority", CLI_INT, .to = &want->priority, .least = -1000000, .most = 1000000},
        {"max-hold", CLI_DURATION, .to = &want->max_hold_ms, .least = 1},
        {"at-least", CLI_DURATION, .to = &ask->at_least_ms},
        {"label", CLI_OWN, .to = ask, .take = take_label},
        {"on-loss", CLI_OWN, .to = ask, .take = take_on_loss},
        {"grace", CLI_DURATION, .to = &ask->ending.grace_ms},
        {"E", CLI_INT, .to = &ask->not_acquired_code, .most = 255},
        {"metrics-file", CLI_TEXT, .to = &ask->metrics_path},
        {"metrics-listen", CLI_TEXT, .to = &ask->metrics_listen},
        {"timeout", CLI_DURATION, .to = &ask->open.timeout_ms, .least = 1},
        {"pause", CLI_DURATION, .to = &ask->pause_ms, .least = 1},
        {"owner", CLI_TEXT, .to = &ask->owner},
        {"value", CLI_TEXT, .to = &want->value},
        {"observe", CLI_TRUE, .to = &ask->observe},
        {"json", CLI_TRUE, .to = &ask->json},
    };
    struct cli_option listed[sizeof all / sizeof *all + 1] = {0};
    for (size_t n = 0, len; *names; n++, names += len + strspn(names + len, " ")) {
        size_t i = 0;
        len = strcspn(names, " ");
        while (strlen(all[i].name) != len || memcmp(all[i].name, names, len) != 0)
            hf_check(++i < sizeof all / sizeof *all);
        listed[n] = all[i];
    }
    optind = 0; /* glibc: from the start */
    int code;
    while ((code = cli_options(ask->command, argc, argv, listed, NULL)) == EXIT_SUCCESS)
        ask->help = true;
    return code;
}

/* Checks combinations of options, and sets defaults that depend on other options. */
static bool check_combinations(struct ask *ask)
{
    struct hf_lock_options *want = &ask->want;
    const char *wrong = NULL;
    bool has_wait = want->wait_ms != HF_FOREVER, has_grace = ask->ending.grace_ms >= 0;
    if (ask->no_wait && has_wait)
        wrong = "-n and --wait exclude each other";
    else if (ask->shared && want->slots > 1)
        wrong = "--shared and --slots exclude each other";
    else if (want->max_hold_ms && ask->at_least_ms > want->max_hold_ms)
        wrong = "--at-least is longer than --max-hold";
    else if (ask->metrics_listen && !metrics_listen_check(ask->command, ask->metrics_listen))
        return false;
    else if (has_grace && ask->ending.grace_ms > want->ttl_ms / 2)
        wrong = "--grace is more than half of the TTL, which leaves no time to renew";
    if (wrong) {
        cli_say(ask->command, "%s", wrong);
        return false;
    }
    if (ask->no_wait || (want->retries == 0 && !has_wait))
        want->wait_ms = 0;
    if (want->retries < 0)
        want->retries = 0;
    if (ask->shared)
        want->mode = HF_SHARED;
    if (!has_grace) {
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

bool ask_parse(struct ask *ask, const char *command, int argc, char **argv, const char *names)
{
    *ask = (struct ask){
        .command = command,
        .open = HF_OPTIONS_INIT,
        .want = HF_LOCK_OPTIONS(.ttl_ms = TTL_DEFAULT_MS, .wait_ms = HF_FOREVER, .retries = -1),
        .ending = {.grace_ms = -1},
        .pause_ms = 1000,
        .not_acquired_code = EXIT_NOT_ACQUIRED};
    cli_default_label(ask->label);
    if (read_options(ask, argc, argv, names) >= 0)
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
                       const char *options, size_t names_max, struct operands *ret)
{
    int dashes = find_dashes(argc, argv);
    if (!ask_parse(ask, command, dashes ? dashes : argc, argv, options))
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
