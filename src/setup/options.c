/* See options.h. */
#include "setup/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/variables.h"
#include "holdfast.h"
#include "setup/size.h"

#define EXIT_USAGE 64

struct flag {
    const char *name, *value, *help; /* value NULL: a switch */
    size_t offset;                   /* of its text in struct options */
};

static const struct flag flags[] = {
    {"listen", "ADDR:PORT", "where to listen (127.0.0.1:8080); port 0 picks a free one",
     offsetof(struct options, listen)},
    {"stream-listen", "ADDR:PORT", "where to serve streams as well (beside --listen)",
     offsetof(struct options, stream_listen)},
    {"tls-cert", "FILE", "serve HTTPS with this certificate and its chain, in PEM",
     offsetof(struct options, tls_cert)},
    {"tls-key", "FILE", "the private key of --tls-cert, in PEM; read again at SIGHUP",
     offsetof(struct options, tls_key)},
    {"data", "DIR", "where the server keeps its files (var); created if missing",
     offsetof(struct options, data)},
    {"ledger", "URL", "the ledger (sqlite:DIR/holdfast.db), or postgres://USER@HOST/DATABASE",
     offsetof(struct options, ledger)},
    {"gate", "URL", "a gate that several servers share, redis://HOST:PORT (none)",
     offsetof(struct options, gate)},
    {"reconcile-every", "TIME", "how often view and gate are compared with the ledger (30s)",
     offsetof(struct options, reconcile_every)},
    {"keep", "TIME", "how long finished holds and the log of archived events are kept (forever)",
     offsetof(struct options, keep)},
    {"keep-holds", "TIME", "how long holds are kept that ended and sold nothing, or forever (30d)",
     offsetof(struct options, keep_holds)},
    {"event-idle", "TIME", "when events that nobody asks for leave memory (10m)",
     offsetof(struct options, event_idle)},
    {"event-memory-max", "SIZE", "memory for events, beyond which idle ones leave at once (1GB)",
     offsetof(struct options, event_memory_max)},
    {"http-threads", "N", "threads for HTTP (as many as there are cores)",
     offsetof(struct options, http_threads)},
    {"queue-max", "N", "requests queued before the server answers 503 (16384)",
     offsetof(struct options, queue_max)},
    {"answer-memory-max", "SIZE", "memory for answers that clients have not taken (256MB)",
     offsetof(struct options, answer_memory_max)},
    {"admin-key-file", "PATH", "access keys of admins, one per line; see below",
     offsetof(struct options, admin_key_file)},
    {"seller-key-file", "PATH", "access keys of sellers, one per line",
     offsetof(struct options, seller_key_file)},
    {"public-holds", "on|off", "whether callers without a key may make holds (on)",
     offsetof(struct options, public_holds)},
    {"public-seats-max", "N", "places an address without a key may hold at once (20)",
     offsetof(struct options, public_seats_max)},
    {"hold-rate", "N", "holds an address without a key may make in a minute, or off (20)",
     offsetof(struct options, hold_rate)},
    {"address-connections-max", "N", "connections an address may have (two thirds of all)",
     offsetof(struct options, address_connections_max)},
    {"address-streams-max", "N", "streams an address without a key may have (two thirds of all)",
     offsetof(struct options, address_streams_max)},
    {"trusted-proxy", "CIDR,...", "proxies whose X-Forwarded-For is believed (none)",
     offsetof(struct options, trusted_proxy)},
    {"host", "NAME,...", "names that requests must ask for (any; without keys only loopback)",
     offsetof(struct options, host)},
    {"cors-origin", "ORIGIN,...", "web origins whose pages may use the API, or * (none)",
     offsetof(struct options, cors_origin)},
    {"pages", "on|off", "whether to serve the pages of buyers and operators (on)",
     offsetof(struct options, pages)},
    {"brand", "FILE", "the name, colour, logo and links of the pages for buyers (none)",
     offsetof(struct options, brand)},
    {"payments", "PROVIDER", "sandbox, stripe or off (sandbox on loopback, elsewhere off)",
     offsetof(struct options, payments)},
    {"stripe-api", "URL", "where Stripe's API is (Stripe's own host), such as a `holdfast sandbox`",
     offsetof(struct options, stripe_api)},
    {"capture", "MODE", "or manual: charge the card once the seats are booked (automatic)",
     offsetof(struct options, capture)},
    {"payments-rate", "N", "calls to the provider per second, of all servers (20; sandbox: any)",
     offsetof(struct options, payments_rate)},
    {"sandbox-listen", "ADDR:PORT", "where the sandbox listens (beside --listen, a free port)",
     offsetof(struct options, sandbox_listen)},
    {"sandbox-public", NULL, "let the sandbox listen on other addresses than loopback",
     offsetof(struct options, sandbox_public)},
    {"public-url", "URL", "how buyers' browsers reach the sandbox, if not where it listens",
     offsetof(struct options, public_url)},
    {"notify", "URL", "where to tell the shop of bookings and refunds (nowhere)",
     offsetof(struct options, notify)},
    {"notify-events", "LIST", "of what: booking.confirmed,... or all (all but hold.expired)",
     offsetof(struct options, notify_events)},
    {"journal", "URL", "the journal of the lock service (sqlite:DIR/locks.db), or off",
     offsetof(struct options, journal)},
    {"journal-may-lose", NULL, "use a PostgreSQL journal without synchronous standbys",
     offsetof(struct options, journal_may_lose)},
    {"advertise", "URL", "how others reach this server (http://ADDR:PORT of --listen)",
     offsetof(struct options, advertise)},
    {"cell-timeout", "TIME", "silence of the master after which a standby takes over (2s)",
     offsetof(struct options, cell_timeout)},
    {"sessions-max", "N", "sessions of the lock service that an access key may have (100000)",
     offsetof(struct options, sessions_max)},
    {"env-file", "PATH", "a file of these settings as NAME=VALUE, read again at SIGHUP",
     offsetof(struct options, env_file)},
    {"request-log", NULL, "log a line for each request answered",
     offsetof(struct options, request_log)},
    {"drain-delay", "TIME", "how long to serve on, not ready, before draining (0)",
     offsetof(struct options, drain_delay)},
    {"core-dumps", NULL, "let the kernel write core dumps; they may hold keys of callers",
     offsetof(struct options, core_dumps)},
    {"log-level", "LEVEL", "debug, info, warn, error or off (info)",
     offsetof(struct options, log_level)},
    {"demo", NULL, "create a demo event if there is none, and say how to try it",
     offsetof(struct options, demo)},
};
#define N_FLAGS (sizeof flags / sizeof *flags)

static const char **flag_target(struct options *o, const struct flag *f)
{
    return (const char **)(void *)((char *)o + f->offset);
}

_Noreturn void usage_error(const char *what, const char *detail)
{
    log_print(STDERR_FILENO, "holdfastd: %s%s; see holdfastd --help\n", what, detail);
    log_flush();
    exit(EXIT_USAGE);
}

static void help(void)
{
    puts("usage: holdfastd [options]\n"
         "\n"
         "The Holdfast seat-hold and booking server.\n");
    for (size_t i = 0; i < N_FLAGS; i++)
        printf("  --%-16s %-10s %s\n", flags[i].name, flags[i].value ? flags[i].value : "",
               flags[i].help);
    puts(
        "  --version                     print the version and exit\n"
        "  --help                        print this and exit\n"
        "\n"
        "Each option can be given in the environment instead: --http-threads N is\n"
        "HOLDFAST_HTTP_THREADS=N, --demo is HOLDFAST_DEMO=1.  A flag wins over the file of\n"
        "--env-file, and that wins over the environment.\n"
        "\n"
        "HOLDFAST_ADMIN_KEY and HOLDFAST_SELLER_KEY hold access keys themselves and have no "
        "flags,\n"
        "so that keys stay out of ps.  Without any key everything is open, and only loopback\n"
        "addresses are served.\n"
        "\n"
        "STRIPE_SECRET_KEY, STRIPE_PUBLISHABLE_KEY and STRIPE_WEBHOOK_SECRET belong to --payments\n"
        "stripe, HOLDFAST_NOTIFY_SECRET to --notify.  A secret may be several, with commas "
        "between,\n"
        "while one replaces another.\n"
        "\n"
        "SIGTERM or SIGINT: not ready for --drain-delay, which a second one ends, then finish "
        "what\n"
        "was accepted and exit.  SIGQUIT: the same without the delay.\n"
        "SIGHUP: read access keys, the TLS certificate and log level again, from the files.");
}

static bool options_from_settings(struct options *o, const struct settings *settings,
                                  struct hf_err *err)
{
    for (size_t i = 0; i < N_FLAGS; i++) {
        char name[64] = VARIABLES_PREFIX;
        size_t at = strlen(name);
        for (const char *c = flags[i].name; *c; c++)
            name[at++] = (char)(*c == '-' ? '_' : *c - 'a' + 'A');
        name[at] = '\0';
        hf_check(variables_know(name, at)); /* base/variables.c lists it */
        const char *value = settings_get(settings, name);
        if (!value)
            continue;
        if (!flags[i].value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "%s must be 0 or 1", name);
            return false;
        }
        *flag_target(o, &flags[i]) = flags[i].value || *value == '1' ? value : NULL;
    }
    return true;
}

static const struct flag *flag_find(const char *arg, size_t len)
{
    for (size_t i = 0; i < N_FLAGS; i++)
        if (strlen(flags[i].name) == len && strncmp(flags[i].name, arg, len) == 0)
            return &flags[i];
    return NULL;
}

static void options_from_arguments(struct options *o, char **argv)
{
    for (char **arg = argv + 1; *arg; arg++) {
        if (strcmp(*arg, "--help") == 0 || strcmp(*arg, "-h") == 0) {
            help();
            exit(EXIT_SUCCESS);
        }
        if (strcmp(*arg, "--version") == 0) {
            puts("holdfastd " HF_VERSION_TEXT);
            exit(EXIT_SUCCESS);
        }
        const char *name = *arg;
        if (strncmp(name, "--", 2) != 0)
            usage_error("unexpected argument ", name);
        const char *equals = strchr(name, '=');
        size_t len = equals ? (size_t)(equals - name) - 2 : strlen(name) - 2;
        const struct flag *f = flag_find(name + 2, len);
        if (!f)
            usage_error("unknown option ", name);
        const char *value = equals ? equals + 1 : NULL;
        if (!f->value && value)
            usage_error("no value goes with --", f->name);
        if (f->value && !value && !(value = *++arg))
            usage_error("a value is missing after --", f->name);
        *flag_target(o, f) = value ? value : "1";
    }
}

bool options_read(const struct settings *settings, char **argv, struct options *ret,
                  enum log_level *ret_level, struct hf_err *err)
{
    struct options o = {.listen = "127.0.0.1:8080",
                        .data = "var",
                        .log_level = "info",
                        .public_holds = "on",
                        .public_seats_max = "20",
                        .hold_rate = "20",
                        .pages = "on"};
    if (!options_from_settings(&o, settings, err))
        return false;
    options_from_arguments(&o, argv);
    if (!log_parse_level(o.log_level, ret_level)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "--log-level is debug, info, warn, error or off, not %.60s", o.log_level);
        return false;
    }
    *ret = o;
    return true;
}

long option_number(const char *text, long min, long max, const char *name)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < min || n > max)
        usage_error("not a usable number for --", name);
    return n;
}

bool option_is_on(const char *text, const char *name)
{
    char what[64];
    (void)snprintf(what, sizeof what, "--%s is on or off, not ", name);
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        usage_error(what, text);
    return strcmp(text, "on") == 0;
}

const char *option_shown_url(const char *url, char *ret, size_t size)
{
    const char *host = strstr(url, "://"), *at = strrchr(url, '@');
    const char *end = host ? host + 3 + strcspn(host + 3, "/?#") : url;
    if (host && at && at >= end)
        (void)snprintf(ret, size, "%.*s...", (int)(host + 3 - url), url);
    else if (host && at)
        (void)snprintf(ret, size, "%.*s...%.*s", (int)(host + 3 - url), url, (int)strcspn(at, "?"),
                       at);
    else
        (void)snprintf(ret, size, "%.*s", (int)strcspn(url, "?"), url);
    return ret;
}

int64_t option_duration_ms(const char *text, const char *flag)
{
    int64_t ms = duration_parse_ms(text);
    if (ms < 1 || ms > DURATION_MS_MAX)
        usage_error(flag, " is a duration such as 500ms, 30s or 2m30s");
    return ms;
}

size_t option_size(const char *text, size_t min, const char *flag)
{
    char what[64];
    int64_t bytes = size_parse(text);
    (void)snprintf(what, sizeof what, " is a size such as 64MB or 1GB, from %zuKB on", min >> 10);
    if (bytes < (int64_t)min || bytes > SIZE_TEXT_MAX)
        usage_error(flag, what);
    return (size_t)bytes;
}
