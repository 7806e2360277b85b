/* A real ZooKeeper for a test: one server, or one of an ensemble, on free ports of 127.0.0.1, in a
 * temporary directory, ended by its process id. */
#ifndef HF_TESTS_SUPPORT_ZOOKEEPER_SERVER_H
#define HF_TESTS_SUPPORT_ZOOKEEPER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ZOOKEEPER_SERVERS_MAX 5

struct zookeeper_server {
    pid_t pid; /* 0 if it is not running */
    int port;
    char dir[64];
    char url[64];
    /* The caller sets these before the start. */
    int tick_ms;        /* 0: 100 */
    int session_min_ms; /* 0: 200 */
    int session_max_ms; /* 0: an hour */
    bool no_words;      /* answers none of the four-letter words */
    /* Set by zookeeper_ensemble_start. */
    int id; /* from 1; 0: it is alone */
    int peer_port, election_port;
    char peers[1024]; /* the lines that name the ensemble */
};

/* Returns false if ZooKeeper is not installed. */
bool zookeeper_server_start(struct zookeeper_server *s);
/* Starts one server of an ensemble whose others do not exist, and waits until it answers that it
 * has no quorum. */
bool zookeeper_server_start_lonely(struct zookeeper_server *s);
/* Stops it and removes its directory. */
void zookeeper_server_stop(struct zookeeper_server *s);
/* kill -9: what it has answered is on disk. */
void zookeeper_server_kill(struct zookeeper_server *s);
/* Removes its data, while it is not running. */
void zookeeper_server_forget(struct zookeeper_server *s);
/* Starts it again on the same port, in the same directory. */
void zookeeper_server_again(struct zookeeper_server *s);
/* SIGSTOP and SIGCONT. */
void zookeeper_server_pause(struct zookeeper_server *s);
void zookeeper_server_resume(struct zookeeper_server *s);

/* Sends a four-letter word; `ret` gets the answer, at most size - 1 bytes of it; "": none came
 * for half a minute. */
void zookeeper_server_ask(const struct zookeeper_server *s, const char *word, char *ret,
                          size_t size);

/* Starts `n` servers that form an ensemble, and waits until it serves.  `ret_url` names them all.
 */
bool zookeeper_ensemble_start(struct zookeeper_server *servers, int n, char *ret_url, size_t size);
void zookeeper_ensemble_stop(struct zookeeper_server *servers, int n);
/* How many of the servers are part of a quorum. */
int zookeeper_ensemble_serving(const struct zookeeper_server *servers, int n);

#endif
