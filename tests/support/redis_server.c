/* See redis_server.h. */
#include "support/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"

#define ARGS_MAX 64
/* A busy machine may need seconds for what takes a millisecond on an idle one. */
#define START_MAX_MS 30000
#define SENTINEL_PATIENCE_MS 60000 /* a pause of the primary is no reason to replace it */

static int dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static void run_sentinel(const struct redis_server *s)
{
    char path[128];
    snprintf(path, sizeof path, "%s/sentinel.conf", s->dir);
    FILE *file = fopen(path, "w");
    if (!file)
        _exit(127);
    fprintf(file, "port %d\nbind 127.0.0.1\ndir %s\nlogfile %s/log\n", s->port, s->dir, s->dir);
    fprintf(file, "sentinel monitor main 127.0.0.1 %d 1\n", s->watched->port);
    fprintf(file,
            "sentinel down-after-milliseconds main %d\n"
            "sentinel failover-timeout main 2000\n",
            SENTINEL_PATIENCE_MS);
    if (s->watched->password)
        fprintf(file, "sentinel auth-pass main %s\n", s->watched->password);
    if (s->password)
        fprintf(file, "requirepass %s\n", s->password);
    fclose(file);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("redis-server", "redis-server", path, "--sentinel", (char *)NULL);
    _exit(127);
}

static void run(const struct redis_server *s)
{
    char port[16], bus[16], log[128];
    snprintf(port, sizeof port, "%d", s->port);
    snprintf(log, sizeof log, "%s/log", s->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *args[ARGS_MAX + 1] = {"redis-server",
                                      "--port",
                                      port,
                                      "--bind",
                                      "127.0.0.1",
                                      "--unixsocket",
                                      s->socket,
                                      "--save",
                                      "",
                                      "--dir",
                                      s->dir,
                                      "--logfile",
                                      log,
                                      "--databases",
                                      "16",
                                      "--appendonly",
                                      s->aof ? "yes" : "no",
                                      "--appendfsync",
                                      "always"};
    size_t n = 19;
    if (s->cluster) { /* the default bus port, 10000 above, may be no valid port */
        snprintf(bus, sizeof bus, "%d", s->bus_port);
        args[n++] = "--cluster-enabled";
        args[n++] = "yes";
        args[n++] = "--cluster-port";
        args[n++] = bus;
    }
    if (s->password) {
        args[n++] = "--requirepass";
        args[n++] = s->password;
    }
    for (const char *const *o = s->options; o && *o && n < ARGS_MAX; o++)
        args[n++] = *o;
    execvp(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

/* Waits until it answers; returns false if it has ended. */
static bool spawn(struct redis_server *s)
{
    s->pid = fork();
    hf_check(s->pid >= 0);
    if (s->pid == 0 && s->watched)
        run_sentinel(s);
    if (s->pid == 0)
        run(s);
    for (int i = 0; i < START_MAX_MS / 5; i++) {
        int status, fd = dial(s->port);
        if (fd >= 0) {
            close(fd);
            char pong[64];
            redis_server_ask(s, "PING", pong, sizeof pong);
            if (strncmp(pong, "+PONG", 5) == 0)
                return true;
        }
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        usleep(5000);
    }
    redis_server_kill(s);
    return false;
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
    snprintf(s->dir, sizeof s->dir, "/tmp/holdfast-redis-XXXXXX");
    hf_check(mkdtemp(s->dir));
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

void redis_server_kill(struct redis_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

void redis_server_again(struct redis_server *s) { hf_check(spawn(s)); }

/* kill() alone does not wait until the process stands still. */
void redis_server_pause(struct redis_server *s)
{
    int status;
    hf_check(kill(s->pid, SIGSTOP) == 0);
    hf_check(waitpid(s->pid, &status, WUNTRACED) == s->pid && WIFSTOPPED(status));
}

void redis_server_resume(struct redis_server *s) { hf_check(kill(s->pid, SIGCONT) == 0); }

void redis_server_stop(struct redis_server *s)
{
    redis_server_kill(s);
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", s->dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
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
    int fd = dial(s->port);
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
