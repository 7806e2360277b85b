/* See child.h: signals as a file, and the thread that reads them while the main thread waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/wait.h"
#include "cli/child.h"
#include "cli/common.h"

/* Returns whether nohup, or a shell that started us in its background, has made us ignore the
 * signal. It then concerns neither us nor the command, but if it were blocked, the kernel would
 * queue it. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool signals_block(struct signals *s)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
            return false;
    signal(SIGCHLD, SIG_DFL); /* some parents leave it ignored, and then waitpid has no status */
    static const int handled[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        if (!is_ignored(handled[i]))
            sigaddset(&set, handled[i]);
    sigset_t blocked = set;
    sigaddset(&blocked, SIGTTOU); /* lets tcsetpgrp work from the background */
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGALRM);
    if (sigprocmask(SIG_BLOCK, &blocked, &s->before) != 0)
        return false;
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->fd >= 0;
}

void signals_close(struct signals *s)
{
    close(s->fd);
    s->fd = -1;
}

int signals_next(struct signals *s, bool *ret_from_terminal)
{
    struct signalfd_siginfo info;
    if (read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    *ret_from_terminal = info.ssi_code == SI_KERNEL;
    return (int)info.ssi_signo;
}

static void *hear(void *arg)
{
    struct interrupts *in = arg;
    struct pollfd fds[] = {{.fd = in->stop_fd, .events = POLLIN},
                           {.fd = in->signals->fd, .events = POLLIN}};
    for (;;) {
        if (wait_files(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            return NULL;
        bool from_terminal;
        int signo = signals_next(in->signals, &from_terminal);
        if (signo == SIGTSTP)
            raise(SIGSTOP);
        if (signo != SIGTERM && signo != SIGINT && signo != SIGHUP && signo != SIGQUIT)
            continue;
        if (in->signo)
            _exit(EXIT_SIGNAL + signo);
        in->signo = signo;
        hf_cancel_trigger(in->cancel);
    }
}

bool interrupts_start(struct interrupts *in, struct signals *signals)
{
    *in = (struct interrupts){
        .signals = signals, .cancel = hf_cancel_new(), .stop_fd = eventfd(0, EFD_CLOEXEC)};
    if (in->cancel && in->stop_fd >= 0 && pthread_create(&in->thread, NULL, hear, in) == 0)
        return true;
    if (in->stop_fd >= 0)
        close(in->stop_fd);
    hf_cancel_free(in->cancel);
    return false;
}

void interrupts_stop(struct interrupts *in)
{
    eventfd_write(in->stop_fd, 1);
    pthread_join(in->thread, NULL);
    close(in->stop_fd);
    hf_cancel_free(in->cancel);
}
