/* See coordinator_kinds.h: one block of functions per server, and the table of them. */
#include "lab/coordinator_kinds.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS_MAX 500

static bool always(void) { return true; }

/* ---- Redis ---- */

static bool redis_is_installed(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find("redis-server", path);
}

static bool redis_prepare(const struct coordinator_node *node, struct launch *l, char text[4][160])
{
    (void)snprintf(text[0], 160, "%d", node->port);
    const char *const args[] = {
        NULL,    "--bind",  "127.0.0.1",    "--port", text[0],        "--save", "",
        "--dir", node->dir, "--appendonly", "yes",    "--maxclients", "4000",   NULL};
    memcpy(l->args, args, sizeof args);
    return launch_find("redis-server", l->path);
}

static bool redis_answers(int port, char ret_version[64])
{
    const struct timeval patience = {.tv_usec = ANSWER_MS_MAX * 1000};
    redisContext *redis = redisConnectWithTimeout("127.0.0.1", port, patience);
    bool good = redis && !redis->err && redisSetTimeout(redis, patience) == REDIS_OK;
    /* INFO is answered while the data is still being loaded; other commands are not. */
    redisReply *reply = good ? redisCommand(redis, "INFO") : NULL;
    const char *at = reply && reply->str ? strstr(reply->str, "redis_version:") : NULL;
    good = at && sscanf(at, "redis_version:%63[^\r\n]", ret_version) == 1 &&
           strstr(reply->str, "\nloading:0");
    freeReplyObject(reply);
    if (redis)
        redisFree(redis);
    return good;
}

/* ---- PostgreSQL ---- */

static bool postgres_create(const struct coordinator_node *node, struct hf_err *err)
{
    struct launch l = {.args = {NULL, "-D", "data", "-U", "holdfast", "-A", "trust", "-E", "UTF8",
                                "--locale=C", "--no-sync", NULL},
                       .dir = node->dir,
                       .log = "initdb.log",
                       .user = launch_user(),
                       .out = -1,
                       .death_signal = SIGKILL};
    if (!launch_find("initdb", l.path)) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "initdb is not in PATH");
        return false;
    }
    return launch_run(&l) || launch_fail(&l, "initdb", err);
}

static bool postgres_prepare(const struct coordinator_node *node, struct launch *l,
                             char text[4][160])
{
    (void)snprintf(text[0], 160, "port=%d", node->port);
    const char *const args[] = {NULL,
                                "-D",
                                "data",
                                "-c",
                                "unix_socket_directories=",
                                "-c",
                                "listen_addresses=127.0.0.1",
                                "-c",
                                text[0],
                                "-c",
                                "max_connections=500",
                                "-c",
                                "log_min_messages=fatal",
                                NULL};
    memcpy(l->args, args, sizeof args);
    return launch_find("postgres", l->path);
}

static bool postgres_answers(int port, char ret_version[64])
{
    char url[160];
    (void)snprintf(url, sizeof url, "postgres://holdfast@127.0.0.1:%d/postgres?connect_timeout=2",
                   port);
    if (PQping(url) != PQPING_OK)
        return false;
    PGconn *db = PQconnectdb(url);
    const char *version = PQparameterStatus(db, "server_version");
    bool good =
        PQstatus(db) == CONNECTION_OK && version && sscanf(version, "%63[0-9.]", ret_version) == 1;
    PQfinish(db);
    return good;
}

/* ---- etcd, ZooKeeper, holdfastd: a line is sent, the answer read until the server closes ---- */

static bool ask(int port, const char *text, char *ret, size_t size)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port)};
    const struct timeval patience = {.tv_usec = ANSWER_MS_MAX * 1000};
    size_t len = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 &&
                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
                send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
    for (ssize_t n = 1; good && n > 0 && len<size - 1; len += n> 0 ? (size_t)n : 0)
        n = recv(fd, ret + len, size - 1 - len, 0);
    ret[len] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return good && len > 0;
}

static bool etcd_is_installed(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find("etcd", path);
}

/* A single member is not dialled by others, so the address that it advertises need not exist. */
static bool etcd_prepare(const struct coordinator_node *node, struct launch *l, char text[4][160])
{
    (void)snprintf(text[0], 160, "http://127.0.0.1:%d", node->port);
    (void)snprintf(text[1], 160, "default=http://127.0.0.1:2380");
    const char *const args[] = {NULL,
                                "--data-dir",
                                "data",
                                "--listen-client-urls",
                                text[0],
                                "--advertise-client-urls",
                                text[0],
                                "--listen-peer-urls",
                                "http://127.0.0.1:0",
                                "--initial-advertise-peer-urls",
                                "http://127.0.0.1:2380",
                                "--initial-cluster",
                                text[1],
                                "--log-level",
                                "error",
                                "--logger",
                                "zap",
                                NULL};
    memcpy(l->args, args, sizeof args);
    return launch_find("etcd", l->path);
}

/* Is `healthy` in the first kilobyte of one page, and in that of another the version, between
 * `before` and a quote? */
static bool answers_http(int port, const char *health_page, const char *healthy,
                         const char *version_page, const char *before, char ret_version[64])
{
    char request[64], answer[1024];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", health_page);
    if (!ask(port, request, answer, sizeof answer) || !strstr(answer, healthy))
        return false;
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", version_page);
    const char *at = ask(port, request, answer, sizeof answer) ? strstr(answer, before) : NULL;
    return at && sscanf(at + strlen(before), "%63[^\"]", ret_version) == 1;
}

static bool etcd_answers(int port, char ret_version[64])
{
    return answers_http(port, "/health", "\"true\"", "/version", "\"etcdserver\":\"", ret_version);
}

#define ZOOKEEPER_JAR "../share/java/zookeeper.jar"

static bool zookeeper_is_installed(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find("java", path) && launch_find_beside(ZOOKEEPER_JAR, path);
}

static bool zookeeper_create(const struct coordinator_node *node, struct hf_err *err)
{
    char path[COORDINATOR_DIR_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/zoo.cfg", node->dir);
    FILE *out = fopen(path, "we");
    bool good = out && fprintf(out,
                               "tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=60000\n"
                               "dataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%d\n"
                               "maxClientCnxns=0\nadmin.enableServer=false\n"
                               "4lw.commands.whitelist=srvr\n",
                               node->dir, node->port) > 0;
    good = (!out || fclose(out) == 0) && good;
    if (!good)
        (void)hf_err_set(err, HF_INTERNAL, "%s: %m", path);
    return good;
}

static bool zookeeper_prepare(const struct coordinator_node *node, struct launch *l,
                              char text[4][160])
{
    static char jar[LAUNCH_PATH_SIZE]; /* the same for every node */
    (void)node, (void)text;
    const char *const args[] = {NULL,
                                "-Xmx96m",
                                "-XX:+UseSerialGC",
                                "-XX:TieredStopAtLevel=1",
                                "-XX:-UsePerfData",
                                "-cp",
                                jar,
                                "org.apache.zookeeper.server.ZooKeeperServerMain",
                                "zoo.cfg",
                                NULL};
    memcpy(l->args, args, sizeof args);
    return launch_find_beside(ZOOKEEPER_JAR, jar) && launch_find("java", l->path);
}

static bool zookeeper_answers(int port, char ret_version[64])
{
    char answer[1024];
    return ask(port, "srvr", answer, sizeof answer) &&
           sscanf(answer, "Zookeeper version: %63[0-9.]", ret_version) == 1;
}

/* ---- holdfastd ---- */

static bool holdfast_is_installed(void)
{
    char path[LAUNCH_PATH_SIZE];
    return launch_find_holdfastd(path);
}

static bool holdfast_prepare(const struct coordinator_node *node, struct launch *l,
                             char text[4][160])
{
    (void)snprintf(text[0], 160, "127.0.0.1:%d", node->port);
    const char *const args[] = {NULL,   "--listen",    text[0], "--data",
                                "data", "--log-level", "warn",  NULL};
    memcpy(l->args, args, sizeof args);
    return launch_find_holdfastd(l->path);
}

static bool holdfast_answers(int port, char ret_version[64])
{
    return answers_http(port, "/v1/cell", "\"role\":\"master\"", "/metrics", "{version=\"",
                        ret_version);
}

/* ---- the table ---- */

static bool memory_answers(int port, char ret_version[64])
{
    (void)port;
    ret_version[0] = '\0';
    return true;
}

static bool sqlite_answers(int port, char ret_version[64])
{
    (void)port;
    (void)snprintf(ret_version, 64, "%s", sqlite3_libversion());
    return true;
}

static bool postgres_is_installed(void) { return servers_have_postgres(); }

static const char boot_clock[] = "its clock is the machine's boot-time clock, which nobody can set";

const struct coordinator_node_kind coordinator_node_kinds[COORDINATOR_KINDS] = {
    [COORDINATOR_MEMORY] = {.name = "memory",
                            .scheme = "memory:",
                            .no_steps = boot_clock,
                            .is_installed = always,
                            .answers = memory_answers},
    [COORDINATOR_SQLITE] = {.name = "sqlite",
                            .scheme = "sqlite:",
                            .no_steps = boot_clock,
                            .is_installed = always,
                            .answers = sqlite_answers},
    [COORDINATOR_POSTGRES] = {.name = "postgres",
                              .scheme = "postgres://holdfast@",
                              .database = "/postgres",
                              .n_nodes = 1,
                              .title = "PostgreSQL",
                              .is_installed = postgres_is_installed,
                              .create = postgres_create,
                              .prepare = postgres_prepare,
                              .answers = postgres_answers,
                              .death_signal = SIGQUIT},
    [COORDINATOR_REDIS] = {.name = "redis",
                           .scheme = "redis://",
                           .database = "",
                           .n_nodes = 1,
                           .title = "Redis",
                           .is_installed = redis_is_installed,
                           .prepare = redis_prepare,
                           .answers = redis_answers,
                           .death_signal = SIGKILL},
    [COORDINATOR_REDLOCK] = {.name = "redlock",
                             .scheme = "redlock://",
                             .database = "?max_ttl=5s",
                             .n_nodes = 3,
                             .title = "Redis",
                             .is_installed = redis_is_installed,
                             .prepare = redis_prepare,
                             .answers = redis_answers,
                             .death_signal = SIGKILL},
    [COORDINATOR_ETCD] = {.name = "etcd",
                          .scheme = "etcd://",
                          .database = "",
                          .n_nodes = 1,
                          .title = "etcd",
                          .no_steps = "a Go server's clock cannot be stepped from outside",
                          .is_installed = etcd_is_installed,
                          .prepare = etcd_prepare,
                          .answers = etcd_answers,
                          .death_signal = SIGKILL},
    [COORDINATOR_ZOOKEEPER] = {.name = "zookeeper",
                               .scheme = "zookeeper://",
                               .database = "",
                               .n_nodes = 1,
                               .title = "ZooKeeper",
                               .no_steps = "libfaketime also breaks the waits of a Java server",
                               .is_installed = zookeeper_is_installed,
                               .create = zookeeper_create,
                               .prepare = zookeeper_prepare,
                               .answers = zookeeper_answers,
                               .death_signal = SIGKILL},
    [COORDINATOR_HOLDFAST] = {.name = "holdfast",
                              .scheme = "holdfast://",
                              .database = "",
                              .n_nodes = 1,
                              .title = "holdfastd",
                              .no_steps = boot_clock,
                              .is_installed = holdfast_is_installed,
                              .prepare = holdfast_prepare,
                              .answers = holdfast_answers,
                              .death_signal = SIGKILL,
                              .is_ours = true},
};
