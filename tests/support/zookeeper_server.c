/* See zookeeper_server.h. */
#include "support/zookeeper_server.h"

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

#define START_MAX_MS 30000 /* Java on a busy machine */
#define JARS "/usr/share/java/"
#define CLASS_PATH                                                                                 \
    JARS "zookeeper.jar:" JARS "zookeeper-jute.jar:" JARS "slf4j-api.jar:" JARS                    \
         "slf4j-nop.jar:" JARS "netty-all.jar:" JARS "snappy-java.jar:" JARS                       \
         "metrics-core.jar:" JARS "commons-cli.jar"

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

void zookeeper_server_ask(const struct zookeeper_server *s, const char *word, char *ret,
                          size_t size)
{
    size_t len = 0;
    int fd = dial(s->port);
    ret[0] = '\0';
    if (fd < 0)
        return;
    struct pollfd file = {.fd = fd, .events = POLLIN};
    if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
        while (len < size - 1 && poll(&file, 1, 2000) > 0) {
            ssize_t n = read(fd, ret + len, size - 1 - len);
            if (n <= 0)
                break;
            len += (size_t)n;
        }
    ret[len] = '\0';
    close(fd);
}

/* ---- starting ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    hf_check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* `peers`: the lines that name the ensemble. */
static void configure(struct zookeeper_server *s, const char *peers)
{
    char text[2048];
    snprintf(text, sizeof text,
             "tickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\ndataDir=%s\nclientPort=%d\n"
             "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
             "initLimit=50\nsyncLimit=20\n4lw.commands.whitelist=%s\n%s",
             s->tick_ms ? s->tick_ms : 100, s->session_min_ms ? s->session_min_ms : 200,
             s->session_max_ms ? s->session_max_ms : 3600000, s->dir, s->port,
             s->no_words ? "none" : "*", peers);
    write_file(s->dir, "zoo.cfg", text);
    if (s->id) {
        snprintf(text, sizeof text, "%d\n", s->id);
        write_file(s->dir, "myid", text);
    }
}

/* Containers are not removed while a test runs: a claim about the last fence depends on them.  The
 * log is written without fsync, which a kill does not undo, and which a busy disk may take seconds
 * for. */
static void run(const struct zookeeper_server *s)
{
    char config[128], log[128];
    snprintf(config, sizeof config, "%s/zoo.cfg", s->dir);
    snprintf(log, sizeof log, "%s/log", s->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-Xshare:auto",
           "-XX:TieredStopAtLevel=1", "-Dznode.container.checkIntervalMs=3600000",
           "-Dzookeeper.forceSync=no", "-cp", CLASS_PATH,
           "org.apache.zookeeper.server.quorum.QuorumPeerMain", config, (char *)NULL);
    _exit(127);
}

static bool is_serving(const struct zookeeper_server *s)
{
    char answer[1024];
    if (s->no_words) {
        int fd = dial(s->port);
        if (fd >= 0)
            close(fd);
        return fd >= 0;
    }
    zookeeper_server_ask(s, "srvr", answer, sizeof answer);
    return strstr(answer, "Mode:") != NULL;
}

static void spawn(struct zookeeper_server *s)
{
    s->pid = fork();
    hf_check(s->pid >= 0);
    if (s->pid == 0)
        run(s);
}

/* Waits until it serves; returns false if it has ended. */
static bool await(struct zookeeper_server *s)
{
    for (int i = 0; i < START_MAX_MS / 20; i++) {
        int status;
        if (is_serving(s))
            return true;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        usleep(20000);
    }
    zookeeper_server_kill(s);
    return false;
}

static void place(struct zookeeper_server *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/holdfast-zookeeper-XXXXXX");
    hf_check(mkdtemp(s->dir));
    s->port = port_free(NULL);
    snprintf(s->url, sizeof s->url, "zookeeper://127.0.0.1:%d", s->port);
}

bool zookeeper_server_start(struct zookeeper_server *s)
{
    place(s);
    configure(s, "");
    spawn(s);
    return await(s);
}

bool zookeeper_server_start_lonely(struct zookeeper_server *s)
{
    char peers[256], answer[1024] = "";
    place(s);
    s->id = 1;
    snprintf(peers, sizeof peers,
             "server.1=127.0.0.1:%d:%d\nserver.2=127.0.0.1:%d:%d\nserver.3=127.0.0.1:%d:%d\n",
             port_free(NULL), port_free(NULL), port_free(NULL), port_free(NULL), port_free(NULL),
             port_free(NULL));
    configure(s, peers);
    spawn(s);
    for (int i = 0; i < START_MAX_MS / 20; i++) {
        zookeeper_server_ask(s, "srvr", answer, sizeof answer);
        if (strstr(answer, "not currently serving"))
            return true;
        usleep(20000);
    }
    return false;
}

/* ---- stopping ---- */

void zookeeper_server_kill(struct zookeeper_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

void zookeeper_server_again(struct zookeeper_server *s)
{
    spawn(s);
    if (s->id == 0)
        hf_check(await(s));
}

/* Returns when all threads have stopped: kill() alone does not wait for that. */
void zookeeper_server_pause(struct zookeeper_server *s)
{
    int status;
    hf_check(kill(s->pid, SIGSTOP) == 0);
    hf_check(waitpid(s->pid, &status, WUNTRACED) == s->pid && WIFSTOPPED(status));
}

void zookeeper_server_resume(struct zookeeper_server *s) { kill(s->pid, SIGCONT); }

static void remove_directory(const char *dir)
{
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

void zookeeper_server_forget(struct zookeeper_server *s)
{
    char data[128];
    snprintf(data, sizeof data, "%s/version-2", s->dir);
    remove_directory(data);
}

void zookeeper_server_stop(struct zookeeper_server *s)
{
    zookeeper_server_kill(s);
    if (s->dir[0])
        remove_directory(s->dir);
}

/* ---- ensembles ---- */

bool zookeeper_ensemble_start(struct zookeeper_server *servers, int n, char *ret_url, size_t size)
{
    char peers[1024];
    size_t peers_len = 0, url_len = (size_t)snprintf(ret_url, size, "zookeeper://");
    for (int i = 0; i < n; i++) {
        struct zookeeper_server *s = &servers[i];
        place(s);
        s->id = i + 1;
        s->peer_port = port_free(NULL);
        s->election_port = port_free(NULL);
        peers_len +=
            (size_t)snprintf(peers + peers_len, sizeof peers - peers_len,
                             "server.%d=127.0.0.1:%d:%d\n", s->id, s->peer_port, s->election_port);
        url_len += (size_t)snprintf(ret_url + url_len, size - url_len, "%s127.0.0.1:%d",
                                    i ? "," : "", s->port);
    }
    for (int i = 0; i < n; i++) {
        configure(&servers[i], peers);
        spawn(&servers[i]);
    }
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok = await(&servers[i]) && ok;
    return ok;
}

void zookeeper_ensemble_stop(struct zookeeper_server *servers, int n)
{
    for (int i = 0; i < n; i++)
        zookeeper_server_stop(&servers[i]);
}

int zookeeper_ensemble_serving(const struct zookeeper_server *servers, int n)
{
    int serving = 0;
    for (int i = 0; i < n; i++)
        serving += servers[i].pid > 0 && is_serving(&servers[i]);
    return serving;
}
