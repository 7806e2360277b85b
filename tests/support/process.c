/* See process.h. */
#include "support/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"

#define SCRIPT "scripts/server" /* tests run in the project's folder */
#define START_MAX_MS 60000
#define LOOK_EVERY_MS 5

void process_make_dir(const char *kind, char *ret_dir, size_t size)
{
    const char *base = getenv("TMPDIR");
    hf_check((size_t)snprintf(ret_dir, size, "%s/holdfast-%s-XXXXXX", base && *base ? base : "/tmp",
                              kind) < size);
    hf_check(mkdtemp(ret_dir));
}

/* A search for leaks takes seconds per process; that of the test has one. */
static char *child_asan_options = "ASAN_OPTIONS=detect_leaks=0:exitcode=99";

int process_start(const char *const *argv, int *ret_out)
{
    int out[2], n = 0;
    hf_check(pipe2(out, O_CLOEXEC) == 0);
    for (char **one = environ; *one; one++)
        n++;
    /* Between fork and exec nothing may be allocated: another thread may have the allocator's lock. */
    char **settings = hf_alloc((size_t)(n + 2) * sizeof *settings), **last = settings;
    for (char **one = environ; *one; one++)
        if (strncmp(*one, "ASAN_OPTIONS=", 13) != 0)
            *last++ = *one;
    *last = child_asan_options;
    pid_t parent = getpid(), pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        dup2(out[1], STDOUT_FILENO);
        execvpe(argv[0], (char *const *)(uintptr_t)argv, settings);
        _exit(127);
    }
    free(settings);
    close(out[1]);
    if (ret_out)
        *ret_out = out[0];
    else
        close(out[0]);
    return pid;
}

/* Does every thread of this process but the caller's sleep? */
static bool others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool sleep = true;
    hf_check(tasks);
    for (struct dirent *task; sleep && (task = readdir(tasks));) {
        char path[300], text[512], *end;
        if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
            continue;
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = '\0';
        /* "PID (NAME) STATE ..."; a thread that has ended has no text. */
        sleep = n <= 0 || ((end = strrchr(text, ')')) && end[1] == ' ' && end[2] == 'S');
    }
    closedir(tasks);
    return sleep;
}

pid_t process_fork(void)
{
    for (int i = 0; !others_sleep(); i++) {
        hf_check(i < START_MAX_MS);
        usleep(1000);
    }
    return fork();
}

int process_wait(int pid)
{
    int status;
    hf_check(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

pid_t process_spawn(const char *dir, const char *const *words)
{
    const char *args[PROCESS_WORDS_MAX + 2] = {SCRIPT};
    for (size_t i = 0; words[i]; i++) {
        hf_check(i < PROCESS_WORDS_MAX);
        args[i + 1] = words[i];
    }
    char log[128];
    (void)snprintf(log, sizeof log, "%s/log", dir);
    /* Not in the child, which would wait for locks of other threads; and once, for their sake. */
    if (!getenv("SERVER_FOR_TESTS"))
        setenv("SERVER_FOR_TESTS", "1", 1);
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid > 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    execv(SCRIPT, (char *const *)(uintptr_t)args);
    _exit(127);
}

void process_run(const char *dir, const char *const *words)
{
    int status;
    pid_t pid = process_spawn(dir, words);
    hf_check(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    (void)fprintf(stderr, "%s %s failed; see %s/log\n", SCRIPT, words[0], dir);
    abort();
}

bool process_has_ended(pid_t *pid)
{
    int status;
    if (*pid > 0 && waitpid(*pid, &status, WNOHANG) == *pid)
        *pid = 0;
    return *pid <= 0;
}

bool process_await(pid_t *pid, bool (*serves)(const void *server), const void *server)
{
    for (int i = 0; i < START_MAX_MS / LOOK_EVERY_MS; i++) {
        if (serves(server))
            return true;
        if (process_has_ended(pid))
            return false;
        usleep(LOOK_EVERY_MS * 1000);
    }
    process_kill(pid);
    return false;
}

void process_kill(pid_t *pid)
{
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

void process_pause(pid_t pid)
{
    int status;
    hf_check(kill(pid, SIGSTOP) == 0);
    hf_check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

void process_resume(pid_t pid) { hf_check(kill(pid, SIGCONT) == 0); }

void process_remove(const char *path)
{
    pid_t pid = fork();
    hf_check(pid >= 0);
    if (pid == 0) {
        execlp("rm", "rm", "-rf", path, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

int process_dial(int port)
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
