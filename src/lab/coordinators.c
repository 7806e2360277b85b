/* See coordinators.h; what differs between the servers is in coordinator_kinds.c.  Ports are drawn
 * below the range that the kernel gives to outgoing connections, so that a node which is down finds
 * its port free when it comes back. */
#include "lab/coordinators.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "lab/coordinator_kinds.h"

#define PORT_FIRST 20000
#define PORT_RANGE 12000
#define PORT_TRIES 100
#define START_TRIES 5 /* another program may take the port in between; old children may linger */
#define CHILDREN_MAX 1024
#define FAKETIME "../lib/*/faketime/libfaketime.so.1"

static const struct coordinator_node_kind *kind_of(const struct coordinator *c)
{
    return &coordinator_node_kinds[c->kind];
}

const char *coordinator_name(enum coordinator_kind kind)
{
    return coordinator_node_kinds[kind].name;
}

bool coordinator_is_installed(enum coordinator_kind kind, char ret_why[COORDINATOR_WHY_SIZE])
{
    const struct coordinator_node_kind *k = &coordinator_node_kinds[kind];
    if (k->is_installed())
        return true;
    (void)snprintf(ret_why, COORDINATOR_WHY_SIZE, "%s is not installed", k->title);
    return false;
}

bool coordinator_has_steps(enum coordinator_kind kind, char ret_why[COORDINATOR_WHY_SIZE])
{
    char path[LAUNCH_PATH_SIZE];
    const char *why = coordinator_node_kinds[kind].no_steps;
    if (!why && launch_find_beside(FAKETIME, path))
        return true;
    (void)snprintf(ret_why, COORDINATOR_WHY_SIZE, "%s", why ? why : "faketime is not installed");
    return false;
}

/* ---- directories and ports ---- */

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
    (void)st, (void)what, (void)at;
    (void)remove(path);
    return 0;
}

static void remove_tree(const char *dir) { (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static bool make_dir(const char *dir, struct hf_err *err)
{
    const struct passwd *user = launch_user();
    if (mkdir(dir, 0700) == 0 && (!user || chown(dir, user->pw_uid, user->pw_gid) == 0))
        return true;
    (void)hf_err_set(err, HF_INTERNAL, "%s: %s", dir, strerror(errno));
    return false;
}

static bool is_free(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        (void)close(fd);
    return good;
}

static int draw_port(void)
{
    struct random random;
    random_init_system(&random);
    int port = 0;
    for (int i = 0; i < PORT_TRIES; i++) {
        port = PORT_FIRST + (int)random_below(&random, PORT_RANGE);
        if (is_free(port))
            break;
    }
    return port;
}

/* ---- clocks ---- */

/* Written to another file first, since the server reads it at every look at its clock. */
static bool write_offset(const struct coordinator_node *node, int64_t seconds, struct hf_err *err)
{
    char path[COORDINATOR_DIR_SIZE + 16], fresh[COORDINATOR_DIR_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/clock", node->dir);
    (void)snprintf(fresh, sizeof fresh, "%s/clock-new", node->dir);
    FILE *out = fopen(fresh, "we");
    bool good =
        out && fprintf(out, "%+lld\n", (long long)seconds) > 0 && fchmod(fileno(out), 0644) == 0;
    good = (!out || fclose(out) == 0) && good && rename(fresh, path) == 0;
    if (!good)
        (void)hf_err_set(err, HF_INTERNAL, "%s: %s", path, strerror(errno));
    return good;
}

/* The environment of this process, and what libfaketime reads.  Monotonic clocks stay as they
 * are, as they do when an administrator sets the time.  libc is named before the program's own
 * libraries, so that Redis uses its malloc: jemalloc looks at the clock, and libfaketime
 * allocates. */
static bool write_environment(const struct coordinator_node *node, char texts[2][LAUNCH_PATH_SIZE],
                              char *out[LAUNCH_ENVIRONMENT_MAX])
{
    char library[LAUNCH_PATH_SIZE - 32];
    static char no_cache[] = "FAKETIME_NO_CACHE=1", monotonic[] = "DONT_FAKE_MONOTONIC=1",
                also_monotonic[] = "FAKETIME_DONT_FAKE_MONOTONIC=1";
    char found[LAUNCH_PATH_SIZE];
    if (!launch_find_beside(FAKETIME, found) || strlen(found) >= sizeof library)
        return false;
    memcpy(library, found, strlen(found) + 1);
    (void)snprintf(texts[0], LAUNCH_PATH_SIZE, "LD_PRELOAD=%s:libc.so.6", library);
    (void)snprintf(texts[1], LAUNCH_PATH_SIZE, "FAKETIME_TIMESTAMP_FILE=%s/clock", node->dir);
    char *const more[] = {texts[0], texts[1], no_cache, monotonic, also_monotonic, NULL};
    launch_environment("LD_PRELOAD=", more, out);
    return true;
}

bool coordinator_step_clock(struct coordinator *c, size_t node, int64_t seconds, struct hf_err *err)
{
    hf_check(c->has_steps && node < c->n_nodes);
    return write_offset(&c->nodes[node], seconds, err);
}

/* ---- nodes ---- */

struct question {
    struct coordinator *c;
    int port;
};

static bool answers(const void *ctx)
{
    const struct question *q = ctx;
    return kind_of(q->c)->answers(q->port, q->c->version);
}

static bool start_once(struct coordinator *c, struct coordinator_node *node, struct hf_err *err)
{
    const struct coordinator_node_kind *kind = kind_of(c);
    char text[4][160], more[2][LAUNCH_PATH_SIZE], *environment[LAUNCH_ENVIRONMENT_MAX];
    struct launch l = {.dir = node->dir,
                       .log = "server.log",
                       .user = kind->is_ours ? NULL : launch_user(),
                       .out = -1,
                       .death_signal = kind->death_signal};
    if (!kind->prepare(node, &l, text) ||
        (c->has_steps && !write_environment(node, more, environment))) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s or faketime is not in PATH", kind->title);
        return false;
    }
    if (kind->is_ours) {
        char *const none[] = {NULL};
        launch_environment("HOLDFAST_", none, environment);
    }
    if (c->has_steps || kind->is_ours)
        l.environment = environment;
    node->pid = launch_start(&l);
    const struct question question = {.c = c, .port = node->port};
    return launch_await(&node->pid, answers, &question) || launch_fail(&l, kind->title, err);
}

static bool start_node(struct coordinator *c, struct coordinator_node *node, struct hf_err *err)
{
    for (int i = 0; i < START_TRIES; i++) {
        if (start_once(c, node, err))
            return true;
        launch_stop(&node->pid);
        launch_pause();
    }
    return false;
}

static bool create_node(struct coordinator *c, struct coordinator_node *node, struct hf_err *err)
{
    const struct coordinator_node_kind *kind = kind_of(c);
    return make_dir(node->dir, err) && (!c->has_steps || write_offset(node, 0, err)) &&
           (!kind->create || kind->create(node, err));
}

static bool open_node(struct coordinator *c, size_t i, struct hf_err *err)
{
    struct coordinator_node *node = &c->nodes[i];
    (void)snprintf(node->dir, sizeof node->dir, "%.80s/%d", c->dir, (int)i);
    node->port = draw_port();
    return create_node(c, node, err) && start_node(c, node, err) &&
           (node->relay = relay_start(node->port, err));
}

/* ---- opening ---- */

static void write_url(const struct coordinator *c, bool relayed, char ret[SERVER_URL_SIZE])
{
    const struct coordinator_node_kind *kind = kind_of(c);
    size_t len = (size_t)snprintf(ret, SERVER_URL_SIZE, "%s", kind->scheme);
    for (size_t i = 0; i < c->n_nodes; i++) {
        int port = relayed ? relay_port(c->nodes[i].relay) : c->nodes[i].port;
        len += (size_t)snprintf(ret + len, SERVER_URL_SIZE - len, "%s127.0.0.1:%d", i ? "," : "",
                                port);
    }
    (void)snprintf(ret + len, SERVER_URL_SIZE - len, "%s", kind->database);
}

bool coordinator_open(struct coordinator *c, const struct servers *home, enum coordinator_kind kind,
                      bool has_steps, struct hf_err *err)
{
    *c = (struct coordinator){.kind = kind, .has_steps = has_steps};
    (void)snprintf(c->dir, sizeof c->dir, "%s/%s-XXXXXX", home->dir, coordinator_name(kind));
    const struct passwd *user = launch_user();
    if (!mkdtemp(c->dir) || (user && chown(c->dir, user->pw_uid, user->pw_gid) != 0)) {
        (void)hf_err_set(err, HF_INTERNAL, "%s: %s", c->dir, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < kind_of(c)->n_nodes; i++) {
        c->n_nodes = i + 1;
        if (!open_node(c, i, err))
            return false;
    }
    if (c->n_nodes > 0) {
        write_url(c, false, c->url);
        write_url(c, true, c->relayed_url);
        return true;
    }
    if (kind == COORDINATOR_SQLITE)
        (void)snprintf(c->url, sizeof c->url, "sqlite:%s/locks.db", c->dir);
    else
        (void)snprintf(c->url, sizeof c->url, "%s", kind_of(c)->scheme);
    return kind_of(c)->answers(0, c->version);
}

void coordinator_close(struct coordinator *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        relay_stop(c->nodes[i].relay);
        coordinator_kill(c, i);
    }
    if (c->dir[0])
        remove_tree(c->dir);
    *c = (struct coordinator){0};
}

/* ---- breaking ---- */

/* The children of a process; PostgreSQL has one per connection. */
static size_t list_children(pid_t pid, pid_t ret[CHILDREN_MAX])
{
    char path[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *in = fopen(path, "re");
    for (int child; in && n < CHILDREN_MAX && fscanf(in, "%d", &child) == 1;)
        ret[n++] = child;
    if (in)
        (void)fclose(in);
    return n;
}

void coordinator_kill(struct coordinator *c, size_t node)
{
    struct coordinator_node *it = &c->nodes[node];
    pid_t children[CHILDREN_MAX];
    if (it->pid <= 0)
        return;
    (void)kill(it->pid, SIGSTOP); /* it starts no more children meanwhile */
    size_t n = list_children(it->pid, children);
    for (size_t i = 0; i < n; i++)
        (void)kill(children[i], SIGKILL);
    (void)kill(it->pid, SIGKILL);
    (void)waitpid(it->pid, NULL, 0);
    it->pid = 0;
}

bool coordinator_restart(struct coordinator *c, size_t node, bool is_empty, struct hf_err *err)
{
    struct coordinator_node *it = &c->nodes[node];
    hf_check(node < c->n_nodes && it->pid == 0);
    if (is_empty)
        remove_tree(it->dir);
    return (!is_empty || create_node(c, it, err)) && start_node(c, it, err);
}

void coordinator_set_relays(struct coordinator *c, enum relay_mode mode)
{
    for (size_t i = 0; i < c->n_nodes; i++)
        relay_set(c->nodes[i].relay, mode);
}

struct relay_count coordinator_count(const struct coordinator *c)
{
    struct relay_count sum = {0};
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct relay_count one = relay_count(c->nodes[i].relay);
        sum.messages += one.messages;
        sum.bytes += one.bytes;
    }
    return sum;
}

void coordinator_remove_file(struct coordinator *c)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[COORDINATOR_DIR_SIZE + 32];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s/locks.db%s", c->dir, ends[i]);
        (void)unlink(path);
    }
}
