/* `holdfast sandbox`: the simulator of Stripe's protocol as a program of its own.  The main thread
 * starts it, waits for a signal and stops it. */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"
#include "cli/common.h"
#include "http/listen.h"
#include "sandbox/sandbox.h"

#define COMMAND "sandbox"
#define LISTEN_DEFAULT "127.0.0.1:12111"

static const char usage[] =
    "usage: holdfast sandbox [--listen ADDR:PORT] [--data FILE] [--url URL]\n"
    "                        [--webhook URL --webhook-secret SECRET] [--faults JSON]\n"
    "Simulates Stripe: payment intents, refunds, events and signed webhooks.  Any sk_test_X is an\n"
    "account, and pk_test_X its publishable key.\n"
    "  --listen ADDR:PORT        a loopback address (default " LISTEN_DEFAULT "); port 0: any\n"
    "  --data FILE               keeps everything in this SQLite file (default: in memory)\n"
    "  --url URL                 how buyers reach it, for action pages (default: the address)\n"
    "  --webhook URL             where events are sent\n"
    "  --webhook-secret SECRET   what they are signed with\n"
    "  --faults JSON             what goes wrong on purpose, as POST /sandbox/faults takes it\n"
    "  --log-level LEVEL         debug, info, warn (default), error or off\n";

struct sandbox_options {
    const char *listen;
    struct sandbox_config config;
    char *webhook_secret;
    enum log_level log_level;
};

static bool take_webhook_secret(void *to, char *value)
{
    char **secret = to;
    free(*secret);
    *secret = hf_strndup(value, strlen(value));
    memset(value, '*', strlen(value)); /* where ps shows it */
    return true;
}

static bool take_log_level(void *to, char *value) { return log_parse_level(value, to); }

/* Returns the exit code with which to end at once; -1: go on. */
static int read_options(int argc, char **argv, struct sandbox_options *o)
{
    const struct cli_option options[] = {
        {"listen", CLI_TEXT, .to = &o->listen},
        {"data", CLI_TEXT, .to = &o->config.data},
        {"url", CLI_TEXT, .to = &o->config.base_url},
        {"webhook", CLI_TEXT, .to = &o->config.webhook},
        {"webhook-secret", CLI_OWN, .to = &o->webhook_secret, .take = take_webhook_secret},
        {"faults", CLI_TEXT, .to = &o->config.faults},
        {"log-level", CLI_OWN, .to = &o->log_level, .take = take_log_level},
        {0}};
    int code = cli_options(COMMAND, argc, argv, options, usage);
    if (code >= 0)
        return code;
    if (optind != argc || (o->config.webhook && !o->webhook_secret)) {
        cli_say(COMMAND,
                optind != argc ? "takes no arguments" : "--webhook needs --webhook-secret");
        return EX_USAGE;
    }
    return -1;
}

static bool open_socket(const char *text, int *ret_fd)
{
    struct listen_address at;
    struct hf_err err = {0};
    if (!listen_parse(text, &at, &err)) {
        cli_say(COMMAND, "%s", err.msg);
        return false;
    }
    if (!listen_is_loopback(&at)) {
        cli_say(COMMAND, "%s is not a loopback address, and the sandbox has no TLS", text);
        return false;
    }
    if (!listen_open(&at, ret_fd, &err)) {
        cli_say(COMMAND, "cannot listen on %s: %s", text, err.msg);
        return false;
    }
    return true;
}

static int serve(struct sandbox_options *o, const sigset_t *signals)
{
    struct sandbox *sandbox = NULL;
    struct hf_err err = {0};
    char address[LISTEN_TEXT_SIZE];
    siginfo_t info;
    if (!open_socket(o->listen, &o->config.listen_fd))
        return EX_USAGE;
    listen_text(o->config.listen_fd, address);
    o->config.clock = &clock_system;
    o->config.webhook_secret = o->webhook_secret;
    if (sandbox_start(&o->config, &sandbox, &err) != HF_OK) {
        cli_say(COMMAND, "%s", err.msg);
        return err.code == HF_INVALID_REQUEST ? EX_USAGE : EX_UNAVAILABLE;
    }
    printf("sandbox listening on http://%s\n", address);
    (void)fflush(stdout);
    while (!wait_signal(signals, &info, -1))
        continue;
    sandbox_stop(sandbox);
    return EXIT_SUCCESS;
}

int cli_sandbox(int argc, char **argv)
{
    struct sandbox_options o = {.listen = LISTEN_DEFAULT, .log_level = LOG_WARN};
    int code = read_options(argc, argv, &o);
    if (code >= 0) {
        free(o.webhook_secret);
        return code;
    }
    /* Signals are blocked before any thread starts, so that only `serve` takes them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(0077);
    log_set_level(o.log_level);
    code = serve(&o, &signals);
    free(o.webhook_secret);
    return code;
}
