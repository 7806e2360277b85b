/* Finds installed programs and starts them as children of this process, for the lab's throwaway
 * servers.  A child ends when the thread that started it ends, so a thread that starts a server
 * must live for as long as the server. */
#ifndef HF_LAB_LAUNCH_H
#define HF_LAB_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

#define LAUNCH_PATH_SIZE 512
#define LAUNCH_ARGS_MAX 28
#define LAUNCH_START_MS_MAX 30000
#define LAUNCH_STOP_MS_MAX 10000
#define LAUNCH_ENVIRONMENT_MAX 1024

struct passwd;

struct launch {
    char path[LAUNCH_PATH_SIZE];
    const char *args[LAUNCH_ARGS_MAX]; /* [0] is the path; ended by NULL */
    const char *dir;                   /* its working directory */
    const char *log;                   /* the file for its stderr, in `dir` */
    const struct passwd *user;         /* NULL for the user of this process */
    int out;                           /* its stdout; -1 for the log */
    int death_signal;                  /* sent to it when the thread that started it ends */
    char **environment;                /* NULL for that of this process */
};

/* Finds a program in PATH, or in lib/postgresql/VERSION/bin beside one of its directories, where
 * Debian puts PostgreSQL. */
bool launch_find(const char *program, char ret[LAUNCH_PATH_SIZE]);
/* Finds the file that a pattern of glob(7) names, relative to one of the directories in PATH; of
 * several, the last.  "../share/java/x.jar" finds /usr/share/java/x.jar. */
bool launch_find_beside(const char *pattern, char ret[LAUNCH_PATH_SIZE]);
/* Finds the holdfastd beside this program. */
bool launch_find_holdfastd(char ret[LAUNCH_PATH_SIZE]);
/* The user that servers run as; NULL for the user of this process. */
const struct passwd *launch_user(void);
/* Fills in `ret` with the environment of this process without the variables that begin with
 * `without`, and with `more`, a list of "NAME=VALUE" that ends with NULL. */
void launch_environment(const char *without, char *const *more, char *ret[LAUNCH_ENVIRONMENT_MAX]);

/* Returns the process id, or a negative number with errno. */
pid_t launch_start(struct launch *l);
/* Starts the program, waits until it ends and returns whether it ended well. */
HF_MUST_USE bool launch_run(struct launch *l);
/* Asks `answers` until it returns true.  Returns false if the child has ended, *pid is then 0, or
 * does not answer within LAUNCH_START_MS_MAX. */
HF_MUST_USE bool launch_await(pid_t *pid, bool (*answers)(const void *ctx), const void *ctx);
/* Sends SIGINT, and SIGKILL if the child has not ended after LAUNCH_STOP_MS_MAX.  Sets *pid to 0;
 * accepts 0. */
void launch_stop(pid_t *pid);
/* Copies the last line of a log in `dir`. */
#define LAUNCH_LINE_SIZE 160
void launch_last_line(const char *dir, const char *log, char ret[LAUNCH_LINE_SIZE]);
/* Sets `err` to "WHAT: " and the last line of the log, and returns false. */
bool launch_fail(const struct launch *l, const char *what, struct hf_err *err);
/* Sleeps for the pause between two looks at a child. */
void launch_pause(void);

#endif
