/* See pgbouncer.h. */
#include "support/pgbouncer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "support/port.h"
#include "support/process.h"

static void write_config(const struct pgbouncer *p, const char *mode)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/pgbouncer.ini", p->dir);
    FILE *file = fopen(path, "w");
    hf_check(file);
    (void)fprintf(file,
                  "[databases]\n* = host=127.0.0.1 port=%d user=holdfast\n[pgbouncer]\n"
                  "listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n"
                  "pool_mode = %s\ndefault_pool_size = 20\nlogfile = %s/log\n",
                  postgres_server_own()->port, p->port, mode, p->dir);
    hf_check(fclose(file) == 0);
    hf_check(chmod(path, 0644) == 0);
}

/* Runs in the child.  PgBouncer refuses to run as root, too. */
static void become_pgbouncer(const struct pgbouncer *p)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/pgbouncer.ini", p->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const struct passwd *user = getpwnam("postgres");
    if (getuid() == 0 && (!user || setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 ||
                          setuid(user->pw_uid) != 0))
        _exit(126);
    int null = open("/dev/null", O_WRONLY);
    (void)dup2(null, 1);
    (void)dup2(null, 2);
    (void)execl("/usr/sbin/pgbouncer", "pgbouncer", path, (char *)NULL);
    (void)execlp("pgbouncer", "pgbouncer", path, (char *)NULL);
    _exit(127);
}

static bool accepts(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return ok;
}

void pgbouncer_start(struct pgbouncer *p, const char *mode)
{
    char database[POSTGRES_URL_SIZE];
    postgres_server_fresh(database);
    process_make_dir("pgb", p->dir, sizeof p->dir);
    hf_check(chmod(p->dir, 0777) == 0); /* another user writes its log there */
    p->port = port_free(NULL);
    write_config(p, mode);
    (void)snprintf(p->url, sizeof p->url, "postgres://holdfast@127.0.0.1:%d/%s", p->port,
                   strrchr(database, '/') + 1);
    p->pid = fork();
    hf_check(p->pid >= 0);
    if (p->pid == 0)
        become_pgbouncer(p);
    for (int i = 0; i < 3000 && !accepts(p->port); i++) {
        if (waitpid(p->pid, NULL, WNOHANG) != 0) {
            (void)fprintf(stderr, "PgBouncer does not start; see %s\n", p->dir);
            abort();
        }
        usleep(10000);
    }
}

void pgbouncer_stop(struct pgbouncer *p)
{
    char path[128];
    static const char *const files[] = {"pgbouncer.ini", "log"};
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", p->dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(p->dir);
}
