/* See signals.h.  On the main thread. */
#include "setup/signals.h"

#include <stddef.h>
#include <string.h>

void signals_ending(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGQUIT);
}

void signals_taken(sigset_t *ret)
{
    signals_ending(ret);
    sigaddset(ret, SIGHUP);
}

/* Leaves a handler alone that was installed before, such as a profiler's. */
static void ignore(int number)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)signal(number, SIG_IGN);
}

void signals_prepare(void)
{
    static const int ignored[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
                                  SIGIO,   SIGPWR,  SIGXCPU, SIGXFSZ, SIGSTKFLT};
    sigset_t taken;
    signals_taken(&taken);
    (void)pthread_sigmask(SIG_BLOCK, &taken, NULL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        ignore(ignored[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        ignore(number);
}

const char *signals_name(int number)
{
    const char *name = sigabbrev_np(number);
    return name ? name : "?";
}
