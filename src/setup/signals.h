/* The signals of holdfastd.  HUP, INT, QUIT and TERM are taken by the main thread; every other one
 * whose default action would end the process is ignored, but for the ones that mean a fault (ABRT,
 * SEGV and their kin), and KILL. */
#ifndef HF_SETUP_SIGNALS_H
#define HF_SETUP_SIGNALS_H

#include <signal.h>

/* Blocks the signals that the main thread takes, and ignores the others.  Call it before the first
 * thread starts, since threads inherit the mask. */
void signals_prepare(void);

/* Those that the main thread takes with wait_signal, and those of them that end the server. */
void signals_taken(sigset_t *ret);
void signals_ending(sigset_t *ret);

/* "TERM" of SIGTERM. */
const char *signals_name(int number);

#endif
