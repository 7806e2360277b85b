/* The server's main thread: starts the parts in order (sockets, engine, locks, HTTP), waits for
 * signals, reloads keys, certificate and log level, takes samples of the metrics, tells the service
 * manager how it is, and stops the parts.  In the server setup/options.c alone reads flags,
 * setup/signals.c alone prepares signals, no other file waits for them, and base/settings.c and
 * setup/service.c alone read the environment besides this one and, in test builds, base/crash.c. */
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/brand.h"
#include "api/demo.h"
#include "api/samples.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/private_file.h"
#include "base/secret.h"
#include "base/settings.h"
#include "base/variables.h"
#include "base/wait.h"
#include "checkout/checkout.h"
#include "holdfast.h"
#include "http/guesses.h"
#include "http/listen.h"
#include "http/server.h"
#include "http/stream.h"
#include "setup/locks.h"
#include "setup/options.h"
#include "setup/payments.h"
#include "setup/process.h"
#include "setup/service.h"
#include "setup/signals.h"

/* Stopping takes at most 10 s after the delay: the ledger has until HURRY_MS, then the last answers
 * are sent. */
#define HURRY_MS 8000
#define DRAIN_MS 8500
#define DRAIN_DELAY_MS_MAX 600000
#define EVENT_IDLE_MS 600000
#define KEEP_HOLDS_MS (INT64_C(30) * 24 * 3600 * 1000)
#define EVENT_MEMORY_MAX ((int64_t)1 << 30)
#define EVENT_MEMORY_MIN ((size_t)1 << 20)
#define ANSWER_MEMORY_MIN ((size_t)1 << 20)
#define LONG_BLOCK (128 * 1024)

/* ---- start and stop ---- */

struct program {
    struct engine *engine;
    struct api api;
    struct http_app app;
    struct server *server;
    struct metrics *metrics;
    struct samples *samples;
    struct wait_topics *wait_topics;
    struct access access;
    struct cors cors;
    struct hosts hosts;
    struct tls *tls;     /* NULL: none */
    struct brand *brand; /* NULL: none */
    struct settings settings;
    struct payments payments;
    struct locks locks;
    struct setup_service service;
    unsigned threads;           /* that serve HTTP */
    uint32_t public_places_max; /* places that an address without a key may hold at once */
    struct quota_limits quotas;
    char address[LISTEN_TEXT_SIZE], stream_address[LISTEN_TEXT_SIZE];
    char url[LISTEN_TEXT_SIZE + 8]; /* of `address` */
};

_Noreturn static void fail(const char *what, const char *which, const char *why)
{
    log_print(STDERR_FILENO, "holdfastd: cannot %s %s: %s\n", what, which, why);
    log_flush();
    exit(EXIT_FAILURE);
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

/* Without keys the server answers to the names of loopback, and to those that the operator lists;
 * with keys to any name, or to those that are listed and no others. */
static void read_hosts(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    p->hosts.loopback = !p->access.has_keys;
    if (o->host && !hosts_add(&p->hosts, o->host, &err))
        usage_error("--host: ", err.msg);
    bool is_limited = p->hosts.loopback || p->hosts.n;
    if (is_limited && o->advertise && !hosts_add_url(&p->hosts, o->advertise, &err))
        usage_error("--advertise: ", err.msg);
}

/* 0: not given. */
static size_t address_max(const char *text, const char *name)
{
    return text ? (size_t)option_number(text, 1, 1000000, name) : 0;
}

static struct quota_limits quota_limits(const struct options *o)
{
    struct quota_limits limits = {
        .levels = {[QUOTA_CONNECTIONS] =
                       address_max(o->address_connections_max, "address-connections-max"),
                   [QUOTA_STREAMS] = address_max(o->address_streams_max, "address-streams-max")},
        .rates = {[QUOTA_WRONG_KEYS] = {GUESSES_PER_MINUTE, GUESSES_BURST},
                  [QUOTA_REPLAYS] = {REPLAYS_PER_MINUTE, REPLAYS_BURST}},
    };
    if (strcmp(o->hold_rate, "off") != 0)
        api_hold_limits((uint32_t)option_number(o->hold_rate, 1, API_HOLD_RATE_MAX, "hold-rate"),
                        &limits);
    return limits;
}

static void read_access(struct program *p, const struct options *o)
{
    struct access *a = &p->access;
    struct hf_err err = {0};
    if (!read_keys(a, o, &p->settings, &err))
        fail("use", "the access keys", err.msg);
    a->no_public_buyers = !option_is_on(o->public_holds, "public-holds");
    a->counts_clients = true;
    p->public_places_max =
        (uint32_t)option_number(o->public_seats_max, 1, 1000000000, "public-seats-max");
    p->quotas = quota_limits(o);
    if (o->trusted_proxy && !networks_parse(o->trusted_proxy, &a->trusted, &err))
        usage_error("--trusted-proxy: ", err.msg);
    if (o->cors_origin && !cors_parse(o->cors_origin, &p->cors, &err))
        usage_error("--cors-origin: ", err.msg);
    read_hosts(p, o);
}

static const char *scheme(const struct program *p) { return p->tls ? "https" : "http"; }

static void read_certificate(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    if (!o->tls_cert && !o->tls_key)
        return;
    if (!o->tls_cert || !o->tls_key)
        usage_error("--tls-cert and --tls-key", " belong together");
    p->tls = tls_new(p->metrics, &clock_system);
    if (!tls_load(p->tls, o->tls_cert, o->tls_key, &err))
        fail("use", "the TLS certificate", err.msg);
}

static void read_brand(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    if (!o->brand)
        return;
    if (!brand_read(o->brand, &p->brand, &err))
        fail("use the brand", o->brand, err.msg);
    const char *colors = brand_colors(p->brand);
    log_write(LOG_INFO, "brand", "file", o->brand, "colors", colors ? colors : "-", NULL);
}

static int open_socket(const struct options *o, struct access *access,
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
static int open_stream_socket(const struct options *o, struct access *access,
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
        .has_tls = p->tls != NULL,
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

static int64_t event_memory_max(const struct options *o)
{
    if (!o->event_memory_max)
        return EVENT_MEMORY_MAX;
    return (int64_t)option_size(o->event_memory_max, EVENT_MEMORY_MIN, "--event-memory-max");
}

static int64_t keep_holds_ms(const char *text)
{
    if (!text)
        return KEEP_HOLDS_MS;
    return strcmp(text, "forever") == 0 ? 0 : option_duration_ms(text, "--keep-holds");
}

static void start_engine(struct program *p, const struct options *o)
{
    char url[PATH_MAX + 32], shown[PATH_MAX + 32];
    struct hf_err err = {0};
    p->wait_topics = api_wait_topics_new(&clock_system);
    if (!o->ledger)
        (void)snprintf(url, sizeof url, "sqlite:%s/holdfast.db", o->data);
    const struct engine_config config = {
        .ledger_url = o->ledger ? o->ledger : url,
        .gate_url = o->gate,
        .reconcile_every_ms =
            o->reconcile_every ? option_duration_ms(o->reconcile_every, "--reconcile-every") : 0,
        .clock = &clock_system,
        .queue_len_max =
            o->queue_max ? (size_t)option_number(o->queue_max, 1, 1000000, "queue-max") : 0,
        .public_places_max = p->access.has_keys ? p->public_places_max : 0,
        .metrics = p->metrics,
        .texts = api_texts,
        .keep_ms = o->keep ? option_duration_ms(o->keep, "--keep") : 0,
        .keep_holds_ms = keep_holds_ms(o->keep_holds),
        .event_idle_ms =
            o->event_idle ? option_duration_ms(o->event_idle, "--event-idle") : EVENT_IDLE_MS,
        .event_memory_max = event_memory_max(o),
        .notices = p->payments.notices,
        .jobs_made = checkout_jobs_made,
        .jobs_context = p->payments.checkout,
        .waits_changed = api_waits_changed,
        .waits_context = p->wait_topics,
        .hands_jobs_over = checkout_takes_at_once(p->payments.checkout),
    };
    enum hf_status status = engine_start(&config, &p->engine, &err);
    size_t gate_len = strlen(ENGINE_GATE_ERROR);
    if (status == HF_INVALID_REQUEST && strncmp(err.msg, ENGINE_GATE_ERROR, gate_len) == 0)
        usage_error("--gate: ", err.msg + gate_len);
    if (status == HF_INVALID_REQUEST)
        usage_error(o->ledger ? "--ledger: " : "--data: ", err.msg);
    if (status != HF_OK)
        fail("open the ledger", option_shown_url(config.ledger_url, shown, sizeof shown), err.msg);
}

static void start_locks(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    const struct lock_options options = {
        .journal = o->journal,
        .ledger_is_shared = o->ledger && strncmp(o->ledger, "sqlite:", 7) != 0,
        .scheme = scheme(p),
        .advertise = o->advertise,
        .timeout = o->cell_timeout,
        .sessions_max = o->sessions_max,
        .may_lose = o->journal_may_lose != NULL,
    };
    enum hf_status status =
        locks_start(&p->locks, &options, o->data, p->address, &clock_system, p->metrics, &err);
    if (status == HF_INVALID_REQUEST)
        usage_error(err.msg, "");
    if (status != HF_OK)
        fail("start", "the lock service", err.msg);
}

static void start_server(struct program *p, const struct options *o, int listen_fd, int stream_fd)
{
    struct hf_err err = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->http_threads)
        cores = option_number(o->http_threads, 1, 256, "http-threads");
    p->threads = cores > 0 ? (unsigned)cores : 1;
    p->samples = api_samples_new(p->metrics, &clock_system);
    p->api = (struct api){
        .engine = p->engine,
        .checkout = p->payments.checkout,
        .metrics = p->metrics,
        .samples = p->samples,
        .wait_topics = p->wait_topics,
        .clock = &clock_system,
        .has_pages = option_is_on(o->pages, "pages"),
        .branded = p->brand ? brand_files(p->brand) : NULL,
        .stream_port = stream_fd < 0 ? 0 : (unsigned)atoi(strrchr(p->stream_address, ':') + 1),
    };
    locks_serve(&p->locks, &p->api);
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
        .hosts = &p->hosts,
        .quotas = p->quotas,
        .refuses_cross_site = !p->access.has_keys,
        .tls = p->tls,
        .request_log = o->request_log != NULL,
        .answer_bytes_max =
            o->answer_memory_max
                ? option_size(o->answer_memory_max, ANSWER_MEMORY_MIN, "--answer-memory-max")
                : 0,
    };
    if (server_start(&config, &p->server, &err) != HF_OK)
        fail("serve", o->listen, err.msg);
}

/* Feeds the service manager's watchdog, unless a worker hangs. */
static void tell_alive(struct program *p)
{
    if (engine_turned(p->engine))
        service_say_alive(&p->service);
}

/* Not ready, but serving, until proxies have noticed; another signal ends that. */
static void leave(struct program *p, int64_t delay_ms)
{
    sigset_t endings;
    siginfo_t info;
    if (!delay_ms)
        return;
    signals_ending(&endings);
    log_write(LOG_INFO, "not ready any more", "drain_delay_ms", LOG_INT(delay_ms), NULL);
    server_leave(p->server);
    int64_t until_us = wait_now_us() + delay_ms * 1000, left_us;
    while ((left_us = until_us - wait_now_us()) > 0) {
        int64_t most_us = service_tick_us(&p->service);
        if (wait_signal(&endings, &info, most_us < 0 || left_us < most_us ? left_us : most_us))
            return;
        tell_alive(p);
    }
}

/* Requests and streams end first, then whatever they wait for, then the threads that serve them;
 * the view goes last, since those threads may look at it until they end, and the payments' work
 * that was not finished has events of it pinned. */
static void stop(struct program *p)
{
    engine_hurry(p->engine, HURRY_MS);
    locks_drain(&p->locks);
    if (!server_drain(p->server, DRAIN_MS))
        log_write(LOG_WARN, "some requests were not finished in time", NULL);
    checkout_stop(p->payments.checkout);
    engine_drain(p->engine);
    server_stop(p->server);
    locks_stop(&p->locks);
    payments_stop(&p->payments);
    engine_stop(p->engine);
    api_wait_topics_free(p->wait_topics);
    samples_free(p->samples);
    metrics_free(p->metrics);
    cors_close(&p->cors);
    tls_free(p->tls);
    brand_free(p->brand);
    service_close(&p->service);
    settings_close(&p->settings);
    log_write(LOG_INFO, "stopped", NULL);
    log_stop();
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

static void log_started(const struct program *p, const struct options *o)
{
    char ledger[PATH_MAX + 32], gate[PATH_MAX + 32], journal[PATH_MAX + 32], keys[48];
    if (o->ledger)
        (void)option_shown_url(o->ledger, ledger, sizeof ledger);
    else
        (void)snprintf(ledger, sizeof ledger, "sqlite:%s/holdfast.db", o->data);
    log_write(LOG_INFO, "started", "version", HF_VERSION_TEXT, "listen", p->address, "streams",
              *p->stream_address ? p->stream_address : "none", "ledger", ledger, "gate",
              o->gate ? option_shown_url(o->gate, gate, sizeof gate) : "none", "payments",
              payments_text(&p->payments), "journal",
              option_shown_url(p->locks.journal, journal, sizeof journal), "data", o->data, "keys",
              keys_text(&p->access, keys, sizeof keys), "threads", LOG_INT(p->threads), NULL);
    server_log_places(p->server);
    if (!p->access.has_keys)
        log_write(LOG_WARN,
                  "there are no access keys: every program and every user of this machine may do "
                  "everything",
                  "set", "HOLDFAST_ADMIN_KEY or --admin-key-file", NULL);
    if (!p->access.has_keys && cors_any(&p->cors))
        log_write(LOG_WARN, "--cors-origin * lets every page of the web do everything here", NULL);
}

static void tell_state(struct program *p)
{
    char why[256] = "";
    bool is_well = engine_ready(p->engine, why, sizeof why);
    service_say_state(&p->service, is_well, why, p->url);
}

/* ---- signals ---- */

/* Reads the certificate again.  Whether that works has nothing to do with keys: a key that has to
 * go must not stay because of a certificate. */
static void reload_certificate(struct program *p, const struct options *o)
{
    struct hf_err err = {0};
    if (!p->tls)
        return;
    if (!o->tls_cert || !o->tls_key)
        (void)hf_err_set(&err, HF_INVALID_REQUEST, "--tls-cert and --tls-key are not set");
    else if (tls_load(p->tls, o->tls_cert, o->tls_key, &err))
        log_write(LOG_INFO, "TLS certificate reloaded", "file", o->tls_cert, NULL);
    if (err.code != HF_OK)
        log_write(LOG_ERROR, "the TLS certificate stays as it is", "why", err.msg, NULL);
}

/* Reads keys and log level again.  If anything is wrong with them, all of them stay as they are. */
static void reload(struct program *p, const char *env_file, char **argv)
{
    struct settings settings = {0};
    struct options o;
    struct access next = {0};
    enum log_level level;
    struct hf_err err = {0};
    char keys[48];
    service_say_reloading(&p->service, clock_monotonic_us(&clock_system));
    bool is_read = (!env_file || settings_read(env_file, &settings, &err)) &&
                   options_read(&settings, argv, &o, &level, &err);
    if (is_read)
        reload_certificate(p, &o);
    if (is_read && read_keys(&next, &o, &settings, &err) &&
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
    service_say_reloaded(&p->service);
}

/* Serves until a signal says to stop; returns which.  A SIGHUP of the kernel means that the
 * terminal is gone, and stops a server that was started by hand; any other is a reload. */
static int serve(struct program *p, const char *env_file, char **argv)
{
    sigset_t signals;
    signals_taken(&signals);
    for (;;) {
        siginfo_t info;
        tell_state(p);
        int64_t most_us = service_tick_us(&p->service), sample_us = samples_turn(p->samples);
        int taken =
            wait_signal(&signals, &info, most_us < 0 || sample_us < most_us ? sample_us : most_us);
        if (taken == SIGHUP && info.si_code != SI_KERNEL)
            reload(p, env_file, argv);
        else if (taken)
            return taken;
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

/* Long answers and bodies go back to the system as soon as they are freed.  Left alone, the
 * allocator would keep them: it raises this threshold with every long block that is freed. */
static void give_memory_back(void) { (void)mallopt(M_MMAP_THRESHOLD, LONG_BLOCK); }

int main(int argc, char **argv)
{
    (void)argc;
    give_memory_back();
    struct options o;
    struct hf_err err = {0};
    struct program p = {.metrics = metrics_new()};
    size_t argv_size;
    argv = secret_take_arguments(argv, &argv_size);
    settings_take_environment();
    read_options(&p, argv, &o);
    if (!o.core_dumps)
        secret_forbid_dumps();
    int64_t delay_ms = drain_delay_ms(o.drain_delay);
    signals_prepare();
    if (!log_start(&err))
        fail("start", "the log", err.msg);
    warn_of_unknown_variables();
    (void)umask(0077);

    service_open(&p.service);
    process_metrics(p.metrics);
    read_access(&p, &o);
    read_certificate(&p, &o);
    read_brand(&p, &o);
    int listen_fd = open_socket(&o, &p.access, p.address);
    int stream_fd = open_stream_socket(&o, &p.access, p.stream_address);
    (void)snprintf(p.url, sizeof p.url, "%s://%s", scheme(&p), p.address);
    if (!private_dir_make(o.data, &err))
        fail("use the directory", o.data, err.msg);
    prepare_payments(&p, &o);
    start_engine(&p, &o);
    start_locks(&p, &o);
    struct event *example = NULL;
    if (o.demo && !demo_event(p.engine, &example, &err))
        fail("make", "the demo event", err.msg);
    start_server(&p, &o, listen_fd, stream_fd);
    start_payments(&p);
    log_started(&p, &o);
    log_print(STDOUT_FILENO, "holdfastd listening on %s\n", p.url);
    if (p.payments.sandbox && engine_is_shared(p.engine))
        log_write(
            LOG_WARN,
            "the payments sandbox is inside this server: other servers of the ledger cannot ask it",
            NULL);
    if (p.payments.sandbox)
        log_print(STDOUT_FILENO, "payments sandbox on %s\n", p.payments.sandbox_url);
    if (stream_fd >= 0)
        log_print(STDOUT_FILENO, "streams on %s://%s\n", scheme(&p), p.stream_address);
    if (example)
        demo_say(example, p.url, !p.access.has_keys, p.api.has_pages);

    int signal_taken = serve(&p, o.env_file, argv);
    service_say_stopping(&p.service);
    locks_leave(&p.locks);
    leave(&p, signal_taken == SIGQUIT ? 0 : delay_ms);
    log_write(LOG_INFO, "draining", "signal", signals_name(signal_taken), NULL);
    stop(&p);
    secret_free(argv, argv_size);
    settings_wipe_environment();
    return EXIT_SUCCESS;
}
