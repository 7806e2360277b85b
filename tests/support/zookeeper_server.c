/* See zookeeper_server.h. */
#include "support/zookeeper_server.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"
#include "support/process.h"

#define LONELY_MAX_MS 120000 /* Java on a busy machine */

#define ANSWER_MS 30000
#define LOOK_MS 2000 /* a server that is looked at may be one that stands still */

static void ask_within(const struct zookeeper_server *s, const char *word, char *ret, size_t size,
                       int most_ms)
{
    size_t len = 0;
    int fd = process_dial(s->port);
    ret[0] = '\0';
    if (fd < 0)
        return;
    struct pollfd file = {.fd = fd, .events = POLLIN};
    if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
        while (len < size - 1 && poll(&file, 1, most_ms) > 0) {
            ssize_t n = read(fd, ret + len, size - 1 - len);
            if (n <= 0)
                break;
            len += (size_t)n;
        }
    ret[len] = '\0';
    close(fd);
}

void zookeeper_server_ask(const struct zookeeper_server *s, const char *word, char *ret,
                          size_t size)
{
    ask_within(s, word, ret, size, ANSWER_MS);
}

/* ---- starting ---- */

/* An ensemble's server finds its number in a file. */
static void write_id(const struct zookeeper_server *s)
{
    char path[128];
    snprintf(path, sizeof path, "%s/data", s->dir);
    hf_check(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/data/myid", s->dir);
    FILE *f = fopen(path, "we");
    hf_check(f && fprintf(f, "%d\n", s->id) > 0 && fclose(f) == 0);
}

static bool is_serving(const void *server)
{
    const struct zookeeper_server *s = server;
    char answer[1024];
    if (s->no_words) {
        int fd = process_dial(s->port);
        if (fd >= 0)
            close(fd);
        return fd >= 0;
    }
    ask_within(s, "srvr", answer, sizeof answer, LOOK_MS);
    return strstr(answer, "Mode:") != NULL;
}

static void spawn(struct zookeeper_server *s)
{
    char port[16], tick[32], least[48], most[48];
    const char *words[PROCESS_WORDS_MAX] = {"zookeeper", s->dir, port};
    size_t n = 3;
    snprintf(port, sizeof port, "%d", s->port);
    snprintf(tick, sizeof tick, "tickTime=%d", s->tick_ms);
    snprintf(least, sizeof least, "minSessionTimeout=%d", s->session_min_ms);
    snprintf(most, sizeof most, "maxSessionTimeout=%d", s->session_max_ms);
    if (s->tick_ms)
        words[n++] = tick;
    if (s->session_min_ms)
        words[n++] = least;
    if (s->session_max_ms)
        words[n++] = most;
    if (s->no_words)
        words[n++] = "4lw.commands.whitelist=none";
    if (s->peers[0])
        words[n++] = s->peers;
    s->pid = process_spawn(s->dir, words);
}

static bool await(struct zookeeper_server *s) { return process_await(&s->pid, is_serving, s); }

static void place(struct zookeeper_server *s)
{
    process_make_dir("zookeeper", s->dir, sizeof s->dir);
    s->port = port_free(NULL);
    snprintf(s->url, sizeof s->url, "zookeeper://127.0.0.1:%d", s->port);
}

bool zookeeper_server_start(struct zookeeper_server *s)
{
    place(s);
    spawn(s);
    return await(s);
}

bool zookeeper_server_start_lonely(struct zookeeper_server *s)
{
    char answer[1024] = "";
    place(s);
    s->id = 1;
    snprintf(s->peers, sizeof s->peers,
             "server.1=127.0.0.1:%d:%d\nserver.2=127.0.0.1:%d:%d\nserver.3=127.0.0.1:%d:%d\n",
             port_free(NULL), port_free(NULL), port_free(NULL), port_free(NULL), port_free(NULL),
             port_free(NULL));
    write_id(s);
    spawn(s);
    for (int i = 0; i < LONELY_MAX_MS / 20; i++) {
        ask_within(s, "srvr", answer, sizeof answer, LOOK_MS);
        if (strstr(answer, "not currently serving"))
            return true;
        usleep(20000);
    }
    return false;
}

/* ---- stopping ---- */

void zookeeper_server_kill(struct zookeeper_server *s) { process_kill(&s->pid); }

void zookeeper_server_again(struct zookeeper_server *s)
{
    spawn(s);
    if (s->id == 0)
        hf_check(await(s));
}

void zookeeper_server_pause(struct zookeeper_server *s) { process_pause(s->pid); }
void zookeeper_server_resume(struct zookeeper_server *s) { process_resume(s->pid); }

void zookeeper_server_forget(struct zookeeper_server *s)
{
    char data[128];
    snprintf(data, sizeof data, "%s/data/version-2", s->dir);
    process_remove(data);
}

void zookeeper_server_stop(struct zookeeper_server *s)
{
    zookeeper_server_kill(s);
    if (s->dir[0])
        process_remove(s->dir);
}

/* ---- ensembles ---- */

bool zookeeper_ensemble_start(struct zookeeper_server *servers, int n, char *ret_url, size_t size)
{
    char peers[sizeof servers->peers];
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
        memcpy(servers[i].peers, peers, sizeof peers);
        write_id(&servers[i]);
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
