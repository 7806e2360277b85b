/* The server's main thread: reads options, starts the parts in order (sockets, engine, HTTP), waits
 * for signals, reloads keys and log level, takes samples of the metrics, tells the service manager
 * how it is, and stops the parts.  In the server no other file reads flags or signals, and
 * base/settings.c alone reads the environment besides this one. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/demo.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/notify.h"
#include "base/process.h"
#include "base/samples.h"
#include "base/settings.h"
#include "base/variables.h"
#include "base/wait.h"
#include "checkout/checkout.h"
#include "holdfast.h"
#include "http/listen.h"
#include "http/server.h"
#include "setup/payments.h"

/* Stopping takes at most 10 s after the delay: the ledger has until HURRY_MS, then the last answers
 * are sent. */
#define HURRY_MS 8000
#define DRAIN_MS 8500
#define DRAIN_DELAY_MS_MAX 600000
#define EXIT_USAGE 64
#define TICK_US 1000000 /* how often the service manager is told what has changed */

/* ---- options ---- */

struct options {
    const char *stream_listen;
    const char *listen, *data, *ledger, *http_threads, *queue_max, *log_level, *demo;
    const char *admin_key_file, *seller_key_file, *public_holds, *public_seats_max;
    const char *trusted_proxy, *cors_origin, *request_log;
    const char *gate, *reconcile_every, *keep, *env_file;
    const char *drain_delay, *pages;
    const char *payments, *stripe_api, *capture, *payments_rate, *notify, *notify_events;
    const char *public_url, *sandbox_listen, *sandbox_public;
};

struct flag {
    const char *name, *value, *help; /* value NULL: a switch */
    size_t offset;                   /* of its text in struct options */
};

static const struct flag flags[] = {
    {"listen", "ADDR:PORT", "where to listen (127.0.0.1:8080); port 0 picks a free one",
     offsetof(struct options, listen)},
    {"stream-listen", "ADDR:PORT", "where to serve streams as well (beside --listen)",
     offsetof(struct options, stream_listen)},
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
    {"http-threads", "N", "threads for HTTP (as many as there are cores)",
     offsetof(struct options, http_threads)},
    {"queue-max", "N", "requests queued before the server answers 503 (16384)",
     offsetof(struct options, queue_max)},
    {"admin-key-file", "PATH", "access keys of admins, one per line; see below",
     offsetof(struct options, admin_key_file)},
    {"seller-key-file", "PATH", "access keys of sellers, one per line",
     offsetof(struct options, seller_key_file)},
    {"public-holds", "on|off", "whether callers without a key may make holds (on)",
     offsetof(struct options, public_holds)},
    {"public-seats-max", "N", "places an address without a key may hold at once (20)",
     offsetof(struct options, public_seats_max)},
    {"trusted-proxy", "CIDR,...", "proxies whose X-Forwarded-For is believed (none)",
     offsetof(struct options, trusted_proxy)},
    {"cors-origin", "ORIGIN,...", "web origins whose pages may use the API, or * (none)",
     offsetof(struct options, cors_origin)},
    {"pages", "on|off", "whether to serve the pages of buyers and operators (on)",
     offsetof(struct options, pages)},
    {"payments", "PROVIDER", "sandbox, stripe or off (sandbox on loopback, elsewhere off)",
     offsetof(struct options, payments)},
    {"stripe-api", "URL", "where Stripe's API is (Stripe's own host), such as a `holdfast sandbox`",
     offsetof(struct options, stripe_api)},
    {"capture", "MODE", "automatic, or manual: charge the card once the seats are booked",
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
    {"env-file", "PATH", "a file of these settings as NAME=VALUE, read again at SIGHUP",
     offsetof(struct options, env_file)},
    {"request-log", NULL, "log a line for each request answered",
     offsetof(struct options, request_log)},
    {"drain-delay", "TIME", "how long to serve on, not ready, before draining (0)",
     offsetof(struct options, drain_delay)},
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

_Noreturn static void usage_error(const char *what, const char *detail)
{
    fprintf(stderr, "holdfastd: %s%s; see holdfastd --help\n", what, detail);
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
        "was accepted and exit.\n"
        "SIGHUP: read access keys and log level again, from the files.");
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

/* The options as settings and arguments have them.  At a mistake in the arguments the program ends;
 * there is none when they are read again. */
static bool options_read(const struct settings *settings, char **argv, struct options *ret,
                         enum log_level *ret_level, struct hf_err *err)
{
    struct options o = {.listen = "127.0.0.1:8080",
                        .data = "var",
                        .log_level = "info",
                        .public_holds = "on",
                        .public_seats_max = "20",
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

static long number(const char *text, long min, long max, const char *name)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < min || n > max)
        usage_error("not a usable number for --", name);
    return n;
}

static bool is_on(const char *text, const char *name)
{
    char what[64];
    (void)snprintf(what, sizeof what, "--%s is on or off, not ", name);
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        usage_error(what, text);
    return strcmp(text, "on") == 0;
}

/* ---- start and stop ---- */

struct program {
    struct engine *engine;
    struct api api;
    struct http_app app;
    struct server *server;
    struct metrics *metrics;
    struct samples *samples;
    struct access access;
    struct cors cors;
    struct settings settings;
    struct payments payments;
    struct notifier notifier;
    int64_t watchdog_us; /* the service manager expects a sign of life this often; 0: it does not */
    bool told_ready;     /* the service manager knows that the server has started */
    bool told_well;      /* and that the ledger answers */
    unsigned threads;    /* that serve HTTP */
    uint32_t public_places_max; /* places that an address without a key may hold at once */
    char address[LISTEN_TEXT_SIZE], stream_address[LISTEN_TEXT_SIZE];
};

_Noreturn static void fail(const char *what, const char *which, const char *why)
{
    fprintf(stderr, "holdfastd: cannot %s %s: %s\n", what, which, why);
    exit(EXIT_FAILURE);
}

static void directory_create(const char *path)
{
    char partial[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof partial)
        fail("create the directory", path, strerror(len ? ENAMETOOLONG : ENOENT));
    memcpy(partial, path, len + 1);
    for (char *slash = partial + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(partial, 0700); /* if this fails, so does the last one */
        *slash = '/';
    }
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        fail("create the directory", path, strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        fail("use the directory", path, "it is not a directory");
}

static bool read_scope_keys(struct access *a, enum scope scope, const struct settings *settings,
                            const char *variable, const char *file, struct hf_err *err)
{
    const char *key = settings_get(settings, variable);
    return (!key || access_add_key(a, scope, key, strlen(key), variable, err)) &&
           (!file || access_add_file(a, scope, file, err));
}

static bool read_keys(struct access *a, const struct options *o, const struct settings *settings,
                      struct hf_err *err)
{
    return read_scope_keys(a, SCOPE_ADMIN, settings, "HOLDFAST_ADMIN_KEY", o->admin_key_file,
                           err) &&
           read_scope_keys(a, SCOPE_SELLER, settings, "HOLDFAST_SELLER_KEY", o->seller_key_file,
                           err);
}

static void read_access(struct program *p, const struct options *o)
{
    struct access *a = &p->access;
    struct hf_err err = {0};
    if (!read_keys(a, o, &p->settings, &err))
        fail("use", "the access keys", err.msg);
    a->no_public_buyers = !is_on(o->public_holds, "public-holds");
    a->counts_clients = true;
    p->public_places_max = (uint32_t)number(o->public_seats_max, 1, 1000000000, "public-seats-max");
    if (o->trusted_proxy && !networks_parse(o->trusted_proxy, &a->trusted, &err))
        usage_error("--trusted-proxy: ", err.msg);
    if (o->cors_origin && !cors_parse(o->cors_origin, &p->cors, &err))
        usage_error("--cors-origin: ", err.msg);
}

static int open_socket(const struct options *o, const struct access *access,
                       char address[LISTEN_TEXT_SIZE])
{
    struct listen_address at;
    struct hf_err err = {0};
    int fd;
    if (!listen_parse(o->listen, &at, &err))
        usage_error("--listen: ", err.msg);
    if (!access_may_listen(access, &at, &err))
        fail("listen on", o->listen, err.msg);
    if (!listen_open(&at, &fd, &err)) {
        char why[sizeof err.msg + 48];
        (void)snprintf(why, sizeof why, "%s; use --listen (HOLDFAST_LISTEN)", err.msg);
        fail("listen on", o->listen, why);
    }
    listen_text(fd, address);
    return fd;
}

/* Listens where streams alone are served, if the options say so; -1 if not. */
static int open_stream_socket(const struct options *o, const struct access *access,
                              char address[LISTEN_TEXT_SIZE])
{
    struct listen_address at;
    struct hf_err err = {0};
    int fd;
    if (!o->stream_listen)
        return -1;
    if (!listen_parse(o->stream_listen, &at, &err))
        usage_error("--stream-listen: ", err.msg);
    if (!access_may_listen(access, &at, &err) || !listen_open(&at, &fd, &err))
        fail("listen on", o->stream_listen, err.msg);
    listen_text(fd, address);
    return fd;
}

/* A URL without what may be a password: the part before the @ of a host, and the part after a ?.
 * Where an @ comes later it may belong to a password that is not escaped, so nothing is shown. */
static const char *shown_url(const char *url, char *ret, size_t size)
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

static int64_t duration_ms(const char *text, const char *flag)
{
    int64_t ms = duration_parse_ms(text);
    if (ms < 1 || ms > DURATION_MS_MAX)
        usage_error(flag, " is a duration such as 500ms, 30s or 2m30s");
    return ms;
}

static int64_t drain_delay_ms(const char *text)
{
    int64_t ms = text ? duration_parse_ms(text) : 0;
    if (ms < 0 || ms > DRAIN_DELAY_MS_MAX)
        usage_error("--drain-delay", " is a duration such as 5s, at most 10m");
    return ms;
}

static void prepare_payments(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    struct listen_address at;
    bool is_loopback = listen_parse(o->listen, &at, &err) && listen_is_loopback(&at);
    const struct payment_options options = {
        .provider = o->payments,
        .stripe_api = o->stripe_api,
        .capture = o->capture,
        .rate = o->payments_rate,
        .notify = o->notify,
        .notify_events = o->notify_events,
        .public_url = o->public_url,
        .sandbox_listen = o->sandbox_listen,
        .sandbox_public = o->sandbox_public != NULL,
    };
    enum hf_status status =
        payments_prepare(&p->payments, &options, &p->settings, o->data, p->address, is_loopback,
                         &clock_system, p->metrics, &err);
    if (status == HF_INVALID_REQUEST)
        usage_error(err.msg, "");
    if (status != HF_OK)
        fail("prepare", "payments", err.msg);
}

static void start_payments(struct program *p)
{
    struct hf_err err = {0};
    if (payments_start(&p->payments, &err) != HF_OK)
        fail("start", "the sandbox", err.msg);
    if (checkout_start(p->payments.checkout, p->engine, &err) != HF_OK)
        fail("start", "payments", err.msg);
}

static void start_engine(struct program *p, const struct options *o)
{
    char url[PATH_MAX + 32], shown[PATH_MAX + 32];
    struct hf_err err = {0};
    if (!o->ledger)
        (void)snprintf(url, sizeof url, "sqlite:%s/holdfast.db", o->data);
    const struct engine_config config = {
        .ledger_url = o->ledger ? o->ledger : url,
        .gate_url = o->gate,
        .reconcile_every_ms =
            o->reconcile_every ? duration_ms(o->reconcile_every, "--reconcile-every") : 0,
        .clock = &clock_system,
        .queue_len_max = o->queue_max ? (size_t)number(o->queue_max, 1, 1000000, "queue-max") : 0,
        .public_places_max = p->access.has_keys ? p->public_places_max : 0,
        .metrics = p->metrics,
        .render = api_render,
        .render_map = api_render_map,
        .erase_answer = api_erase_answer,
        .keep_ms = o->keep ? duration_ms(o->keep, "--keep") : 0,
        .notices = p->payments.notices,
        .jobs_made = checkout_jobs_made,
        .jobs_context = p->payments.checkout,
        .hands_jobs_over = checkout_takes_at_once(p->payments.checkout),
    };
    enum hf_status status = engine_start(&config, &p->engine, &err);
    size_t gate_len = strlen(ENGINE_GATE_ERROR);
    if (status == HF_INVALID_REQUEST && strncmp(err.msg, ENGINE_GATE_ERROR, gate_len) == 0)
        usage_error("--gate: ", err.msg + gate_len);
    if (status == HF_INVALID_REQUEST)
        usage_error(o->ledger ? "--ledger: " : "--data: ", err.msg);
    if (status != HF_OK)
        fail("open the ledger", shown_url(config.ledger_url, shown, sizeof shown), err.msg);
}

static void start_server(struct program *p, const struct options *o, int listen_fd, int stream_fd)
{
    struct hf_err err = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->http_threads)
        cores = number(o->http_threads, 1, 256, "http-threads");
    p->threads = cores > 0 ? (unsigned)cores : 1;
    p->samples = api_samples_new(p->metrics, &clock_system);
    p->api = (struct api){
        .engine = p->engine,
        .checkout = p->payments.checkout,
        .metrics = p->metrics,
        .samples = p->samples,
        .has_pages = is_on(o->pages, "pages"),
        .stream_port = stream_fd < 0 ? 0 : (unsigned)atoi(strrchr(p->stream_address, ':') + 1),
    };
    p->app = api_app(&p->api);
    const struct server_config config = {
        .listen_fd = listen_fd,
        .stream_fd = stream_fd,
        .page_port = (unsigned)atoi(strrchr(p->address, ':') + 1),
        .threads = p->threads,
        .app = &p->app,
        .metrics = p->metrics,
        .clock = &clock_system,
        .access = &p->access,
        .cors = &p->cors,
        .request_log = o->request_log != NULL,
    };
    if (server_start(&config, &p->server, &err) != HF_OK)
        fail("serve", o->listen, err.msg);
}

/* How long the main thread may wait before it tells the service manager something; -1: for ever. */
static int64_t tick_us(const struct program *p)
{
    if (!p->notifier.open)
        return -1;
    return p->watchdog_us && p->watchdog_us / 4 < TICK_US ? p->watchdog_us / 4 : TICK_US;
}

/* Feeds the service manager's watchdog, unless a worker hangs. */
static void tell_alive(struct program *p)
{
    if (p->watchdog_us && engine_turned(p->engine))
        notify_send(&p->notifier, "WATCHDOG=1");
}

/* Not ready, but serving, until proxies have noticed; another signal ends that. */
static void leave(struct program *p, int64_t delay_ms)
{
    sigset_t stops;
    siginfo_t info;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    if (!delay_ms)
        return;
    log_write(LOG_INFO, "not ready any more", "drain_delay_ms", LOG_INT(delay_ms), NULL);
    server_leave(p->server);
    int64_t until_us = wait_now_us() + delay_ms * 1000, left_us;
    while ((left_us = until_us - wait_now_us()) > 0) {
        int64_t most_us = tick_us(p);
        if (wait_signal(&stops, &info, most_us < 0 || left_us < most_us ? left_us : most_us))
            return;
        tell_alive(p);
    }
}

/* Requests and streams end first, then whatever they wait for, then the threads that serve them;
 * the view goes last, since those threads may look at it until they end. */
static void stop(struct program *p)
{
    engine_hurry(p->engine, HURRY_MS);
    if (!server_drain(p->server, DRAIN_MS))
        log_write(LOG_WARN, "some requests were not finished in time", NULL);
    checkout_stop(p->payments.checkout);
    engine_drain(p->engine);
    server_stop(p->server);
    engine_stop(p->engine);
    payments_stop(&p->payments);
    samples_free(p->samples);
    metrics_free(p->metrics);
    cors_close(&p->cors);
    notify_close(&p->notifier);
    settings_close(&p->settings);
    log_write(LOG_INFO, "stopped", NULL);
}

/* ---- what operators are told ---- */

static void warn_of_unknown_variables(void)
{
    size_t at = 0, len;
    for (const char *entry; (entry = variables_next_unknown(environ, &at, &len));) {
        char name[128];
        const char *nearest = variables_nearest(entry, len);
        (void)snprintf(name, sizeof name, "%.*s", (int)len, entry);
        log_write(LOG_WARN, "an environment variable is not known and has no effect", "variable",
                  name, "nearest", nearest ? nearest : "-", NULL);
    }
}

static const char *keys_text(const struct access *a, char *ret, size_t size)
{
    int n[2] = {0};
    for (size_t i = 0; i < a->n_keys; i++)
        n[a->keys[i].scope == SCOPE_ADMIN]++;
    (void)snprintf(ret, size, a->has_keys ? "admin:%d,seller:%d" : "none", n[1], n[0]);
    return ret;
}

static void log_start(const struct program *p, const struct options *o)
{
    char ledger[PATH_MAX + 32], gate[PATH_MAX + 32], keys[48];
    if (o->ledger)
        (void)shown_url(o->ledger, ledger, sizeof ledger);
    else
        (void)snprintf(ledger, sizeof ledger, "sqlite:%s/holdfast.db", o->data);
    log_write(LOG_INFO, "started", "version", HF_VERSION_TEXT, "listen", p->address, "streams",
              *p->stream_address ? p->stream_address : "none", "ledger", ledger, "gate",
              o->gate ? shown_url(o->gate, gate, sizeof gate) : "none", "payments",
              payments_text(&p->payments), "data", o->data, "keys",
              keys_text(&p->access, keys, sizeof keys), "threads", LOG_INT(p->threads), NULL);
}

/* Tells the service manager what has changed: that the server has started, that the ledger answers
 * or does not. */
static void tell_state(struct program *p)
{
    char why[256] = "";
    bool well = engine_ready(p->engine, why, sizeof why);
    for (char *c = why; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (well && !p->told_ready)
        notify_send(&p->notifier, "READY=1\nSTATUS=Serving on http://%s", p->address);
    else if (well && !p->told_well)
        notify_send(&p->notifier, "STATUS=Serving on http://%s", p->address);
    else if (!well && (p->told_well || !p->told_ready))
        notify_send(&p->notifier, "STATUS=Not ready: %s", why);
    p->told_ready |= well;
    p->told_well = well;
}

/* ---- signals ---- */

/* Reads keys and log level again.  If anything is wrong with them, all of them stay as they are. */
static void reload(struct program *p, const char *env_file, char **argv)
{
    struct settings settings = {0};
    struct options o;
    struct access next = {0};
    enum log_level level;
    struct hf_err err = {0};
    char keys[48];
    notify_send(&p->notifier, "RELOADING=1\nMONOTONIC_USEC=%lld",
                (long long)clock_monotonic_us(&clock_system));
    if ((!env_file || settings_read(env_file, &settings, &err)) &&
        options_read(&settings, argv, &o, &level, &err) && read_keys(&next, &o, &settings, &err) &&
        access_replace_keys(&p->access, &next, &err)) {
        log_set_level(level);
        log_write(LOG_INFO, "reloaded", "keys", keys_text(&next, keys, sizeof keys), "log_level",
                  o.log_level, NULL);
    } else {
        log_write(LOG_ERROR, "reload failed, keys and log level stay as they are", "why", err.msg,
                  NULL);
    }
    explicit_bzero(&next, sizeof next);
    settings_close(&settings);
    notify_send(&p->notifier, "READY=1");
}

/* Serves until a signal says to stop; returns its name.  A SIGHUP of the kernel means that the
 * terminal is gone, and stops a server that was started by hand; any other is a reload. */
static const char *serve(struct program *p, const sigset_t *signals, const char *env_file,
                         char **argv)
{
    for (;;) {
        siginfo_t info;
        tell_state(p);
        int64_t most_us = tick_us(p), sample_us = samples_turn(p->samples);
        int taken =
            wait_signal(signals, &info, most_us < 0 || sample_us < most_us ? sample_us : most_us);
        if (taken == SIGHUP && info.si_code != SI_KERNEL)
            reload(p, env_file, argv);
        else if (taken)
            return taken == SIGINT ? "INT" : taken == SIGTERM ? "TERM" : "HUP";
        else
            tell_alive(p);
    }
}

/* ---- main ---- */

/* Reads the options, from the file that they name, too. */
static void read_options(struct program *p, char **argv, struct options *ret)
{
    enum log_level level;
    struct hf_err err = {0};
    bool good = options_read(&p->settings, argv, ret, &level, &err);
    if (good && ret->env_file) {
        if (!settings_read(ret->env_file, &p->settings, &err))
            fail("use", "the settings", err.msg);
        const char *env_file = ret->env_file;
        good = options_read(&p->settings, argv, ret, &level, &err);
        ret->env_file = env_file;
    }
    if (!good)
        usage_error(err.msg, "");
    log_set_level(level);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct options o;
    struct hf_err err = {0};
    struct program p = {.metrics = metrics_new()};
    read_options(&p, argv, &o);
    warn_of_unknown_variables();
    int64_t delay_ms = drain_delay_ms(o.drain_delay);

    /* Signals are blocked before any thread starts, so that only `serve` takes them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(0077);

    if (!notify_open(&p.notifier, getenv("NOTIFY_SOCKET"), &err))
        log_write(LOG_WARN, "the service manager cannot be told", "why", err.msg, NULL);
    p.watchdog_us = notify_watchdog_us(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid());
    process_metrics(p.metrics);
    read_access(&p, &o);
    int listen_fd = open_socket(&o, &p.access, p.address);
    int stream_fd = open_stream_socket(&o, &p.access, p.stream_address);
    directory_create(o.data);
    prepare_payments(&p, &o);
    start_engine(&p, &o);
    const struct event *example = NULL;
    if (o.demo && !demo_event(p.engine, &example, &err))
        fail("make", "the demo event", err.msg);
    start_server(&p, &o, listen_fd, stream_fd);
    start_payments(&p);
    log_start(&p, &o);
    printf("holdfastd listening on http://%s\n", p.address);
    if (p.payments.sandbox)
        printf("payments sandbox on %s\n", p.payments.sandbox_url);
    if (stream_fd >= 0)
        printf("streams on http://%s\n", p.stream_address);
    fflush(stdout);
    if (example)
        demo_say(example, p.address, !p.access.has_keys, p.api.has_pages);

    const char *signal_name = serve(&p, &signals, o.env_file, argv);
    notify_send(&p.notifier, "STOPPING=1\nSTATUS=Draining");
    leave(&p, delay_ms);
    log_write(LOG_INFO, "draining", "signal", signal_name, NULL);
    stop(&p);
    return EXIT_SUCCESS;
}
