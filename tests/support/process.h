/* What the real servers of C tests have in common: each is a process with a temporary directory.
 * All but holdfastd are started by scripts/server, which knows their settings. */
#ifndef HF_TESTS_SUPPORT_PROCESS_H
#define HF_TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROCESS_WORDS_MAX 48

/* Makes "holdfast-KIND-XXXXXX" in TMPDIR, or else in /tmp. */
void process_make_dir(const char *kind, char *ret_dir, size_t size);
/* Starts a program by its path, or one in PATH; it ends with the test, however the test ends.  Its
 * standard output can be read from *ret_out unless that is NULL. */
int process_start(const char *const *argv, int *ret_out);
int process_wait(int pid); /* its exit status, or minus the signal */
/* fork() for a child that goes on in this program, instead of calling exec: begins when every other
 * thread sleeps.  The address sanitizer's allocator does not take its locks for a fork, so a thread
 * that allocates meanwhile would leave one locked in the child, which would wait for it for ever. */
pid_t process_fork(void);
/* Starts scripts/server with these words, which NULL ends; what it prints goes to DIR/log. */
pid_t process_spawn(const char *dir, const char *const *words);
/* The same for a program that ends; the test ends if it fails. */
void process_run(const char *dir, const char *const *words);
/* Has the process ended?  Then *pid becomes 0. */
bool process_has_ended(pid_t *pid);
/* Waits until it serves, looking every few milliseconds.  Returns false if it has ended, or does
 * not serve for a minute: a busy machine may need seconds for what takes a millisecond on an
 * idle one. */
bool process_await(pid_t *pid, bool (*serves)(const void *server), const void *server);

void process_kill(pid_t *pid); /* kill -9; harmless if it is not running */
/* Returns when all its threads stand still: kill() alone does not wait for that. */
void process_pause(pid_t pid);
void process_resume(pid_t pid);
void process_remove(const char *path); /* rm -rf */
/* A connection to a port of 127.0.0.1; -1: nobody listens. */
int process_dial(int port);

#endif
