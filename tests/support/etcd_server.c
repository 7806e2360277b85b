/* See etcd_server.h. */
#include "support/etcd_server.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "net/http_client.h"
#include "support/port.h"
#include "support/process.h"

/* ---- processes ---- */

/* Runs a program to its end, silently; returns its exit status. */
static int run(const char *const *argv)
{
    int status;
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    hf_check(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void spawn(struct etcd_server *s)
{
    char port[16], peer[16], ttl[16], quota[24];
    const char *words[PROCESS_WORDS_MAX] = {"etcd", s->dir, port, peer};
    size_t n = 4;
    snprintf(port, sizeof port, "%d", s->port);
    snprintf(peer, sizeof peer, "%d", s->peer_port);
    snprintf(ttl, sizeof ttl, "%d", s->token_ttl_s);
    snprintf(quota, sizeof quota, "%lld", (long long)s->quota_mb << 20);
#define WORDS(name, value) (words[n++] = (name), words[n++] = (value))
    WORDS("--name", s->name);
    WORDS("--initial-cluster", s->cluster);
    WORDS("--bcrypt-cost", "4");
    if (!strchr(s->cluster, ',')) { /* it elects itself, and need not wait a second for that */
        WORDS("--heartbeat-interval", "10");
        WORDS("--election-timeout", "100");
    }
    if (s->quota_mb)
        WORDS("--quota-backend-bytes", quota);
    if (s->token_ttl_s)
        WORDS("--auth-token-ttl", ttl);
    if (s->tls) {
        WORDS("--cert-file", s->cert_file);
        WORDS("--key-file", s->key_file);
        WORDS("--trusted-ca-file", s->ca_file);
        words[n++] = "--client-cert-auth";
    }
#undef WORDS
    s->pid = process_spawn(s->dir, words);
}

static bool has_leader(const void *server)
{
    char answer[256];
    return etcd_server_ask(server, "/health", NULL, answer, sizeof answer) == 200 &&
           strstr(answer, "true");
}

/* Waits until it has a leader; returns false if it has ended. */
static bool await(struct etcd_server *s) { return process_await(&s->pid, has_leader, s); }

/* ---- requests ---- */

static struct http_client *client_of(const struct etcd_server *s)
{
    return http_client_new(&(struct http_client_options){.timeout_ms = 10000,
                                                         .body_len_max = (size_t)8 << 20,
                                                         .ca_file = s->tls ? s->ca_file : NULL,
                                                         .cert_file = s->tls ? s->cert_file : NULL,
                                                         .key_file = s->tls ? s->key_file : NULL});
}

static int ask(const struct etcd_server *s, struct http_client *client, const char *token,
               const char *path, const char *body, struct http_response *ret)
{
    char url[256];
    struct hf_err err;
    struct http_header header = {"Authorization", token};
    snprintf(url, sizeof url, "%s%s", s->endpoint, path);
    struct http_request request = {.method = body ? "POST" : "GET",
                                   .url = url,
                                   .headers = &header,
                                   .n_headers = token != NULL,
                                   .body = body,
                                   .body_len = body ? strlen(body) : 0};
    return http_client_call(client, &request, ret, &err) == HF_OK ? ret->status : 0;
}

/* The token of the user root; NULL: there is none. */
static char *token_of(const struct etcd_server *s, struct http_client *client)
{
    char body[128], *token = NULL;
    struct http_response response = {0};
    if (!s->password)
        return NULL;
    snprintf(body, sizeof body, "{\"name\":\"root\",\"password\":\"%s\"}", s->password);
    if (ask(s, client, NULL, "/v3/auth/authenticate", body, &response) == 200) {
        json_t *json = json_loadb(response.body.data, response.body.len, 0, NULL);
        const char *text = json_string_value(json_object_get(json, "token"));
        token = text ? hf_strndup(text, strlen(text)) : NULL;
        json_decref(json);
    }
    http_response_close(&response);
    return token;
}

int etcd_server_ask(const struct etcd_server *s, const char *path, const char *body, char *ret,
                    size_t size)
{
    struct http_client *client = client_of(s);
    struct http_response response = {0};
    char *token = body ? token_of(s, client) : NULL;
    int status = ask(s, client, token, path, body, &response);
    snprintf(ret, size, "%s", status ? response.body.data : "");
    free(token);
    http_response_close(&response);
    http_client_free(client);
    return status;
}

int64_t etcd_server_metric(const struct etcd_server *s, const char *name)
{
    static const size_t size = (size_t)4 << 20;
    char *all = hf_alloc(size), line[256];
    etcd_server_ask(s, "/metrics", NULL, all, size);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(all, line);
    int64_t number = at ? (int64_t)strtod(at + strlen(line), NULL) : -1;
    free(all);
    return number;
}

/* ---- settings ---- */

static void must_ask(const struct etcd_server *s, const char *path, const char *body)
{
    char answer[512];
    hf_check(etcd_server_ask(s, path, body, answer, sizeof answer) == 200);
}

static void make_user(struct etcd_server *s)
{
    char body[160];
    const char *password = s->password;
    s->password = NULL; /* it is not asked for yet */
    snprintf(body, sizeof body, "{\"name\":\"root\",\"password\":\"%s\"}", password);
    must_ask(s, "/v3/auth/user/add", body);
    must_ask(s, "/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
    must_ask(s, "/v3/auth/enable", "{}");
    s->password = password;
}

/* An authority, and one certificate of it for the server and its clients. */
static void make_certificates(struct etcd_server *s)
{
    char ca_key[96], request[96], extensions[96];
    snprintf(s->ca_file, sizeof s->ca_file, "%s/ca.pem", s->dir);
    snprintf(s->cert_file, sizeof s->cert_file, "%s/cert.pem", s->dir);
    snprintf(s->key_file, sizeof s->key_file, "%s/key.pem", s->dir);
    snprintf(ca_key, sizeof ca_key, "%s/ca-key.pem", s->dir);
    snprintf(request, sizeof request, "%s/request.pem", s->dir);
    snprintf(extensions, sizeof extensions, "%s/extensions", s->dir);
    FILE *f = fopen(extensions, "we");
    hf_check(f);
    fputs("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n", f);
    fclose(f);
    const char *const ca[] = {"openssl",
                              "req",
                              "-x509",
                              "-newkey",
                              "ec",
                              "-pkeyopt",
                              "ec_paramgen_curve:prime256v1",
                              "-nodes",
                              "-keyout",
                              ca_key,
                              "-out",
                              s->ca_file,
                              "-days",
                              "2",
                              "-subj",
                              "/CN=authority",
                              NULL};
    const char *const ask_for[] = {
        "openssl",  "req",     "-newkey",   "ec",   "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes",   "-keyout", s->key_file, "-out", request,    "-subj",
        "/CN=etcd", NULL};
    const char *const sign[] = {"openssl",  "x509",       "-req",   "-in",  request,
                                "-CA",      s->ca_file,   "-CAkey", ca_key, "-CAcreateserial",
                                "-out",     s->cert_file, "-days",  "2",    "-extfile",
                                extensions, NULL};
    hf_check(run(ca) == 0 && run(ask_for) == 0 && run(sign) == 0);
}

/* ---- servers ---- */

static void prepare(struct etcd_server *s, size_t i)
{
    process_make_dir("etcd", s->dir, sizeof s->dir);
    s->port = port_free(NULL);
    s->peer_port = port_free(NULL);
    snprintf(s->name, sizeof s->name, "m%zu", i);
    snprintf(s->endpoint, sizeof s->endpoint, "%s://127.0.0.1:%d", s->tls ? "https" : "http",
             s->port);
    if (s->tls)
        make_certificates(s);
}

bool etcd_cluster_start(struct etcd_server *s, size_t n)
{
    char cluster[sizeof s->cluster] = "";
    for (size_t i = 0; i < n; i++) {
        prepare(&s[i], i);
        size_t len = strlen(cluster);
        snprintf(cluster + len, sizeof cluster - len, "%s%s=http://127.0.0.1:%d", i ? "," : "",
                 s[i].name, s[i].peer_port);
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(s[i].cluster, cluster, sizeof cluster);
        s[i].quota_mb = s->quota_mb;
        spawn(&s[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (!await(&s[i]))
            return false;
    if (s->password)
        make_user(s);
    return true;
}

bool etcd_server_start(struct etcd_server *s) { return etcd_cluster_start(s, 1); }

void etcd_server_kill(struct etcd_server *s) { process_kill(&s->pid); }

void etcd_server_again(struct etcd_server *s, bool awaited)
{
    spawn(s);
    if (awaited)
        hf_check(await(s));
}

void etcd_server_again_empty(struct etcd_server *s)
{
    char data[96];
    snprintf(data, sizeof data, "%s/data", s->dir);
    process_remove(data);
    etcd_server_again(s, true);
}

void etcd_server_pause(struct etcd_server *s) { process_pause(s->pid); }
void etcd_server_resume(struct etcd_server *s) { process_resume(s->pid); }

void etcd_server_stop(struct etcd_server *s)
{
    etcd_server_kill(s);
    if (s->dir[0])
        process_remove(s->dir);
}
