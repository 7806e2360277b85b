/* `holdfast lab` and its commands, in lab.c and lab_*.c. */
#ifndef HF_CLI_LAB_H
#define HF_CLI_LAB_H

#include <signal.h>

int cli_lab(int argc, char **argv);
int cli_lab_race(int argc, char **argv);
int cli_lab_anomalies(int argc, char **argv);
int cli_lab_locks(int argc, char **argv);
int cli_lab_report(int argc, char **argv);
/* One client of `lab locks`, which starts it: lab/lock_client.h. */
int cli_lab_lock_client(int argc, char **argv);

/* Signals that end a program do not, the first time.  Returns where the number of the one that came
 * last will be; 0: none did. */
const volatile sig_atomic_t *lab_catch_signals(void);

#endif
