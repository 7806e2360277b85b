/* See holdfastd_server.h. */
#include "support/holdfastd_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "net/http_client.h"
#include "support/port.h"
#include "support/process.h"

static void program_path(char ret[512])
{
    ssize_t len = readlink("/proc/self/exe", ret, 400);
    hf_check(len > 0);
    ret[len] = '\0';
    for (int i = 0; i < 3; i++) { /* the test, its folder, tests */
        char *slash = strrchr(ret, '/');
        hf_check(slash);
        *slash = '\0';
    }
    memcpy(ret + strlen(ret), "/holdfastd", sizeof "/holdfastd");
}

static _Noreturn void exec_server(const struct holdfastd_server *s)
{
    char program[512], listen[48], log[96];
    const char *args[16] = {"holdfastd"};
    size_t n = 1;
    program_path(program);
    snprintf(listen, sizeof listen, "127.0.0.1:%d", s->port);
    snprintf(log, sizeof log, "%s/log", s->dir);
#define ARG(name, value) (args[n++] = (name), args[n++] = (value))
    ARG("--listen", listen);
    ARG("--data", s->dir);
    ARG("--payments", "off");
    if (s->journal)
        ARG("--journal", s->journal);
    if (s->may_lose)
        args[n++] = "--journal-may-lose";
#undef ARG
    if (s->has_keys) {
        setenv("HOLDFAST_SELLER_KEY", HOLDFASTD_SELLER_KEY, 1);
        setenv("HOLDFAST_ADMIN_KEY", HOLDFASTD_ADMIN_KEY, 1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(program, (char *const *)(uintptr_t)args);
    _exit(127);
}

static void show_log(const struct holdfastd_server *s)
{
    char log[96], text[4096];
    snprintf(log, sizeof log, "%s/log", s->dir);
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    for (ssize_t len; fd >= 0 && (len = read(fd, text, sizeof text)) > 0;)
        (void)!write(STDERR_FILENO, text, (size_t)len);
    close(fd);
}

/* Waits until it is ready; returns false if it has ended. */
static bool await(struct holdfastd_server *s)
{
    char url[64];
    struct http_client *client = http_client_new(NULL);
    struct http_response response = {0};
    const struct http_request request = {.method = "GET", .url = url, .timeout_ms = 2000};
    bool is_ready = false;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/readyz", s->port);
    for (int i = 0; i < 6000 && !is_ready && s->pid; i++) {
        int status;
        is_ready =
            http_client_call(client, &request, &response, NULL) == HF_OK && response.status == 200;
        if (!is_ready && waitpid(s->pid, &status, WNOHANG) == s->pid)
            s->pid = 0;
        if (!is_ready)
            usleep(10000);
    }
    http_response_close(&response);
    http_client_free(client);
    if (!is_ready)
        show_log(s);
    return is_ready;
}

static bool spawn(struct holdfastd_server *s)
{
    s->pid = fork();
    hf_check(s->pid >= 0);
    if (s->pid == 0)
        exec_server(s);
    return await(s);
}

bool holdfastd_server_start(struct holdfastd_server *s)
{
    process_make_dir("holdfastd", s->dir, sizeof s->dir);
    s->port = port_free(NULL);
    return spawn(s);
}

static void end(struct holdfastd_server *s, int signo)
{
    int status;
    if (s->pid == 0)
        return;
    kill(s->pid, SIGCONT);
    kill(s->pid, signo);
    hf_check(waitpid(s->pid, &status, 0) == s->pid);
    s->pid = 0;
}

void holdfastd_server_kill(struct holdfastd_server *s) { end(s, SIGKILL); }

void holdfastd_server_stop(struct holdfastd_server *s)
{
    end(s, SIGTERM);
    process_remove(s->dir);
}

void holdfastd_server_again(struct holdfastd_server *s) { hf_check(spawn(s)); }

void holdfastd_server_pause(struct holdfastd_server *s) { process_pause(s->pid); }
void holdfastd_server_resume(struct holdfastd_server *s) { process_resume(s->pid); }
