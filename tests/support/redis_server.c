/* See redis_server.h. */
#include "support/redis_server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"
#include "support/process.h"

#define SENTINEL_PATIENCE_MS 60000 /* a pause of the primary is no reason to replace it */

/* A sentinel keeps its state in its configuration. */
static void write_sentinel(const struct redis_server *s, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/sentinel.conf", s->dir);
    FILE *file = fopen(ret_path, "w");
    hf_check(file);
    fprintf(file, "sentinel monitor main 127.0.0.1 %d 1\n", s->watched->port);
    fprintf(file,
            "sentinel down-after-milliseconds main %d\n"
            "sentinel failover-timeout main 2000\n",
            SENTINEL_PATIENCE_MS);
    if (s->watched->password)
        fprintf(file, "sentinel auth-pass main %s\n", s->watched->password);
    hf_check(fclose(file) == 0);
}

static bool is_serving(const void *server)
{
    const struct redis_server *s = server;
    char pong[64];
    int fd = process_dial(s->port);
    if (fd < 0)
        return false;
    close(fd);
    redis_server_ask(s, "PING", pong, sizeof pong);
    return strncmp(pong, "+PONG", 5) == 0;
}

/* Waits until it answers; returns false if it has ended. */
static bool spawn(struct redis_server *s)
{
    char port[16], bus[16], config[128];
    const char *words[PROCESS_WORDS_MAX] = {"redis", s->dir, port};
    size_t n = 3;
    snprintf(port, sizeof port, "%d", s->port);
    snprintf(bus, sizeof bus, "%d", s->bus_port);
    if (s->watched) {
        write_sentinel(s, config, sizeof config);
        words[n++] = config;
        words[n++] = "--sentinel";
    }
#define WORDS(name, value) (words[n++] = (name), words[n++] = (value))
    WORDS("--unixsocket", s->socket);
    WORDS("--appendonly", s->aof ? "yes" : "no");
    WORDS("--appendfsync", "always");
    if (s->cluster) { /* the default bus port, 10000 above, may be no valid port */
        WORDS("--cluster-enabled", "yes");
        WORDS("--cluster-port", bus);
    }
    if (s->password)
        WORDS("--requirepass", s->password);
#undef WORDS
    for (const char *const *o = s->options; o && *o && n < PROCESS_WORDS_MAX - 1; o++)
        words[n++] = *o;
    s->pid = process_spawn(s->dir, words);
    return process_await(&s->pid, is_serving, s);
}

/* A sentinel that was kept from running for two seconds distrusts its clock, and replaces no
 * primary for the next thirty (TILT).  Redis before 7.0 has no such setting. */
static void never_tilt(const struct redis_server *sentinel)
{
    char answer[64];
    redis_server_ask(sentinel, "SENTINEL DEBUG TILT-TRIGGER 600000", answer, sizeof answer);
}

bool redis_server_start(struct redis_server *s)
{
    process_make_dir("redis", s->dir, sizeof s->dir);
    snprintf(s->socket, sizeof s->socket, "%s/socket", s->dir);
    s->port = port_free(NULL);
    s->bus_port = s->cluster ? port_free(NULL) : 0; /* by this process, which keeps the claim */
    snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d", s->port);
    snprintf(s->unix_url, sizeof s->unix_url, "unix:%s", s->socket);
    bool runs = spawn(s);
    if (runs && s->watched)
        never_tilt(s);
    return runs;
}

void redis_server_kill(struct redis_server *s) { process_kill(&s->pid); }
void redis_server_again(struct redis_server *s) { hf_check(spawn(s)); }

void redis_server_pause(struct redis_server *s) { process_pause(s->pid); }
void redis_server_resume(struct redis_server *s) { process_resume(s->pid); }

void redis_server_stop(struct redis_server *s)
{
    redis_server_kill(s);
    process_remove(s->dir);
}

/* Returns the end of the reply at `at`, NULL if a part of it is missing before `end`. */
static const char *reply_end(const char *at, const char *end)
{
    const char *line = at < end ? memmem(at, (size_t)(end - at), "\r\n", 2) : NULL;
    if (!line)
        return NULL;
    const char *next = line + 2;
    long long n = strtoll(at + 1, NULL, 10);
    if (*at == '$' && n >= 0)
        return end - next >= n + 2 ? next + n + 2 : NULL;
    for (; *at == '*' && n > 0 && next; n--)
        next = reply_end(next, end);
    return next;
}

static bool is_complete(const char *data, size_t len)
{
    const char *at = data, *end = data + len;
    while (at && at < end)
        at = reply_end(at, end);
    return len > 0 && at;
}

/* Reads an answer to its end, or to that of the room.  A command that has several replies sends
 * them within QUIET_MS of each other. */
#define ANSWER_MS 30000
#define QUIET_MS 20
static size_t read_answer(int fd, char *ret, size_t size)
{
    size_t len = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ret[0] = '\0';
    while (len < size - 1 && poll(&p, 1, is_complete(ret, len) ? QUIET_MS : ANSWER_MS) > 0) {
        ssize_t n = read(fd, ret + len, size - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        ret[len] = '\0';
    }
    return len;
}

void redis_server_ask(const struct redis_server *s, const char *command, char *ret, size_t size)
{
    char line[4096];
    int fd = process_dial(s->port);
    hf_check(fd >= 0);
    if (s->password) {
        int len = snprintf(line, sizeof line, "AUTH %s\r\n", s->password);
        hf_check(send(fd, line, (size_t)len, MSG_NOSIGNAL) == len);
        read_answer(fd, line, sizeof line);
    }
    int len = snprintf(line, sizeof line, "%s\r\n", command);
    hf_check(len < (int)sizeof line && send(fd, line, (size_t)len, MSG_NOSIGNAL) == len);
    read_answer(fd, ret, size);
    close(fd);
}

void redis_server_hurry(const struct redis_server *sentinel)
{
    char answer[64];
    redis_server_ask(sentinel, "SENTINEL SET main down-after-milliseconds 500", answer,
                     sizeof answer);
    hf_check(strcmp(answer, "+OK\r\n") == 0);
}

int64_t redis_server_calls(const struct redis_server *s, const char *command)
{
    static const size_t size = 65536;
    char *all = hf_alloc(size), name[64];
    redis_server_ask(s, "INFO commandstats", all, size);
    snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *at = strstr(all, name);
    int64_t calls = at ? strtoll(at + strlen(name), NULL, 10) : 0;
    free(all);
    return calls;
}
