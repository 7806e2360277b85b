/* A real holdfastd for a test: on a free port of 127.0.0.1, in a temporary directory, ended by its
 * process id.  The program lies where the build put it, two folders above the test's own. */
#ifndef HF_TESTS_SUPPORT_HOLDFASTD_SERVER_H
#define HF_TESTS_SUPPORT_HOLDFASTD_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define HOLDFASTD_SELLER_KEY "seller-key-of-the-tests"
#define HOLDFASTD_ADMIN_KEY "admin-key-of-the-tests"

struct holdfastd_server {
    pid_t pid; /* 0 if it is not running */
    int port;
    char dir[64];
    /* The caller sets these before the start. */
    const char *journal; /* --journal; NULL: SQLite in the server's own folder */
    bool may_lose;       /* --journal-may-lose: PostgreSQL without a synchronous standby */
    bool has_keys;       /* the keys above are needed */
};

/* Returns false if the server did not start; its log is then on stderr. */
bool holdfastd_server_start(struct holdfastd_server *s);
/* Stops it and removes its folder. */
void holdfastd_server_stop(struct holdfastd_server *s);
/* kill -9. */
void holdfastd_server_kill(struct holdfastd_server *s);
/* Starts it again on the same port with its data. */
void holdfastd_server_again(struct holdfastd_server *s);
/* Stops it in its tracks, and lets it go on. */
void holdfastd_server_pause(struct holdfastd_server *s);
void holdfastd_server_resume(struct holdfastd_server *s);

#endif
