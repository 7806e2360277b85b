/* The server's main thread: reads options, starts the parts in order (sockets, engine, HTTP), waits
 * for a signal and stops them.  In the server no other file reads flags, the environment or
 * signals. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/parse.h"
#include "api/render.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/metrics.h"
#include "holdfast.h"
#include "http/listen.h"
#include "http/server.h"
#include "rules/view.h"

/* Stopping takes at most 10 s: the ledger has until HURRY_MS, then the last answers are sent. */
#define HURRY_MS 8000
#define DRAIN_MS 8500
#define EXIT_USAGE 64

/* ---- options ---- */

struct options {
    const char *stream_listen;
    const char *listen, *data, *ledger, *http_threads, *queue_max, *log_level, *demo;
    const char *admin_key_file, *seller_key_file, *public_holds, *public_seats_max;
    const char *trusted_proxy, *cors_origin, *request_log;
    const char *gate, *reconcile_every;
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
    {"request-log", NULL, "log a line for each request answered",
     offsetof(struct options, request_log)},
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
    puts("  --version                     print the version and exit\n"
         "  --help                        print this and exit\n"
         "\n"
         "Each option can be given in the environment instead: --http-threads N is\n"
         "HOLDFAST_HTTP_THREADS=N, --demo is HOLDFAST_DEMO=1.  A flag wins over the environment.\n"
         "\n"
         "HOLDFAST_ADMIN_KEY and HOLDFAST_SELLER_KEY hold access keys themselves and have no "
         "flags,\n"
         "so that keys stay out of ps.  Without any key everything is open, and only loopback\n"
         "addresses are served.\n"
         "\n"
         "SIGTERM or SIGINT: finish what was accepted, then exit.");
}

static void options_from_environment(struct options *o)
{
    for (size_t i = 0; i < N_FLAGS; i++) {
        char name[64] = "HOLDFAST_";
        size_t at = strlen(name);
        for (const char *c = flags[i].name; *c; c++)
            name[at++] = (char)(*c == '-' ? '_' : *c - 'a' + 'A');
        name[at] = '\0';
        const char *value = getenv(name);
        if (!value || !*value)
            continue;
        if (!flags[i].value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
            usage_error(name, " must be 0 or 1");
        *flag_target(o, &flags[i]) = flags[i].value || *value == '1' ? value : NULL;
    }
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

static long number(const char *text, long min, long max, const char *name)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < min || n > max)
        usage_error("not a usable number for --", name);
    return n;
}

/* ---- start and stop ---- */

struct program {
    struct engine *engine;
    struct api api;
    struct http_app app;
    struct server *server;
    struct metrics *metrics;
    struct access access;
    struct cors cors;
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

static void read_key(struct access *a, enum scope scope, const char *variable, const char *file)
{
    struct hf_err err = {0};
    const char *key = getenv(variable);
    if (key && *key && !access_add_key(a, scope, key, strlen(key), variable, &err))
        fail("use", "the access key", err.msg);
    if (file && !access_add_file(a, scope, file, &err))
        fail("use", "the access keys", err.msg);
}

static void read_access(struct program *p, const struct options *o)
{
    struct access *a = &p->access;
    struct hf_err err = {0};
    read_key(a, SCOPE_ADMIN, "HOLDFAST_ADMIN_KEY", o->admin_key_file);
    read_key(a, SCOPE_SELLER, "HOLDFAST_SELLER_KEY", o->seller_key_file);
    a->no_public_buyers = strcmp(o->public_holds, "off") == 0;
    if (!a->no_public_buyers && strcmp(o->public_holds, "on") != 0)
        usage_error("--public-holds is on or off, not ", o->public_holds);
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

/* A URL without what may be a password: the part before the last @, and the part after a ?. */
static const char *shown_url(const char *url, char *ret, size_t size)
{
    const char *at = strrchr(url, '@'), *slashes = strstr(url, "://");
    if (at && slashes && slashes < at)
        (void)snprintf(ret, size, "%.*s...%.*s", (int)(slashes + 3 - url), url,
                       (int)strcspn(at, "?"), at);
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
    p->api = (struct api){.engine = p->engine, .metrics = p->metrics};
    p->app = api_app(&p->api);
    const struct server_config config = {
        .listen_fd = listen_fd,
        .stream_fd = stream_fd,
        .page_port = (unsigned)atoi(strrchr(p->address, ':') + 1),
        .threads = cores > 0 ? (unsigned)cores : 1,
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

/* Requests and streams end first, then whatever they wait for, then the threads that serve them;
 * the view goes last, since those threads may look at it until they end. */
static void stop(struct program *p)
{
    engine_hurry(p->engine, HURRY_MS);
    if (!server_drain(p->server, DRAIN_MS))
        log_write(LOG_WARN, "some requests were not finished in time", NULL);
    engine_drain(p->engine);
    server_stop(p->server);
    engine_stop(p->engine);
    metrics_free(p->metrics);
    cors_close(&p->cors);
    log_write(LOG_INFO, "stopped", NULL);
}

/* ---- the demo ---- */

static const char demo_json[] =
    "{\"name\":\"Gala\",\"currency\":\"usd\",\"sections\":["
    "{\"name\":\"Stalls\",\"tier\":\"A\",\"price\":6500,\"rows\":20,\"seats_per_row\":30},"
    "{\"name\":\"Balcony\",\"tier\":\"B\",\"price\":4500,\"rows\":8,\"seats_per_row\":24}],"
    "\"areas\":[{\"name\":\"Floor\",\"price\":3000,\"capacity\":500}]}";

static void post_done(struct pending *pending) { (void)sem_post(pending->waiter); }

/* Submits the command and waits until it has been carried out. */
static enum verdict run_command(struct engine *e, struct command *command)
{
    sem_t done;
    hf_check(sem_init(&done, 0, 0) == 0);
    command->pending = (struct pending){.done = post_done, .waiter = &done};
    enum hf_status status = engine_submit(e, command);
    if (status != HF_OK)
        command->verdict = verdict_of(status);
    while (status == HF_OK && sem_wait(&done) != 0 && errno == EINTR)
        ;
    (void)sem_destroy(&done);
    return command->verdict;
}

/* The newest event, or NULL if there is none. */
static struct event *newest_event(struct program *p)
{
    struct command command = {.kind = CMD_EVENT_LIST};
    struct event_list *list = hf_alloc(sizeof *list);
    list->limit = 1;
    command.event_list.list = list;
    enum verdict verdict = run_command(p->engine, &command);
    if (verdict != VERDICT_OK)
        fail("read", "the events", verdict_text(verdict));
    struct event *e = list->n ? list->events[0] : NULL;
    command_close(&command);
    return e;
}

static void create_demo_event(struct program *p)
{
    struct hf_err err = {0};
    struct command command = {.kind = CMD_EVENT_CREATE};
    json_t *json = json_loads(demo_json, 0, NULL);
    hf_check(json && parse_event(json, &command.event_create.def, &err));
    json_decref(json);
    enum verdict verdict = run_command(p->engine, &command);
    if (!verdict_is_success(verdict))
        fail("create", "the demo event", verdict_text(verdict));
    command_close(&command);
}

/* Appends two seats that can be held now, as a JSON list. */
static void put_free_seats(const struct event *e, struct buf *out)
{
    uint32_t seats[2], n = 0;
    for (uint32_t i = 0; i < e->def->n_seats && n < 2; i++)
        if (seat_shown_status(seat_shown(e, i)) == SEAT_AVAILABLE)
            seats[n++] = i;
    render_seats(e, seats, n, out);
}

/* The newest event, or a new demo event if there is none. */
static struct event *demo_event(struct program *p)
{
    struct event *e = newest_event(p);
    if (e)
        return e;
    create_demo_event(p);
    return newest_event(p);
}

static void say_what_to_try(const struct program *p, const struct event *e)
{
    struct buf seats = {0};
    put_free_seats(e, &seats);
    buf_char(&seats, '\0');
    const char *id = event_id_text(e);
    printf("\nTry it:\n"
           "  curl http://%s/v1/events/%s/seats\n"
           "  curl -X POST http://%s/v1/holds -d '{\"event\":\"%s\",\"seats\":%s}'\n"
           "  curl -N http://%s/v1/events/%s/stream\n",
           p->address, id, p->address, id, seats.data, p->address, id);
    if (!p->access.has_keys)
        printf("  curl http://%s/metrics\n", p->address);
    putchar('\n');
    fflush(stdout);
    buf_close(&seats);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct options o = {.listen = "127.0.0.1:8080",
                        .data = "var",
                        .log_level = "info",
                        .public_holds = "on",
                        .public_seats_max = "20"};
    enum log_level level;
    options_from_environment(&o);
    options_from_arguments(&o, argv);
    if (!log_parse_level(o.log_level, &level))
        usage_error("--log-level is debug, info, warn, error or off, not ", o.log_level);
    log_set_level(level);

    /* Signals are blocked before any thread starts, so that only sigwait below takes them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(0077);

    struct program p = {.metrics = metrics_new()};
    read_access(&p, &o);
    int listen_fd = open_socket(&o, &p.access, p.address);
    int stream_fd = open_stream_socket(&o, &p.access, p.stream_address);
    directory_create(o.data);
    start_engine(&p, &o);
    const struct event *example = o.demo ? demo_event(&p) : NULL;
    start_server(&p, &o, listen_fd, stream_fd);
    printf("holdfastd listening on http://%s\n", p.address);
    if (stream_fd >= 0)
        printf("streams on http://%s\n", p.stream_address);
    fflush(stdout);
    if (example)
        say_what_to_try(&p, example);

    int signal_taken;
    while (sigwait(&signals, &signal_taken) != 0)
        ;
    log_write(LOG_INFO, "draining", "signal", signal_taken == SIGINT ? "INT" : "TERM", NULL);
    stop(&p);
    return EXIT_SUCCESS;
}
