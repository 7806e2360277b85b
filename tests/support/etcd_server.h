/* Real etcd servers for a test: on free ports of 127.0.0.1, in a temporary directory, ended by
 * their process ids.  They write their files without fsync, which a kill does not undo. */
#ifndef HF_TESTS_SUPPORT_ETCD_SERVER_H
#define HF_TESTS_SUPPORT_ETCD_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct etcd_server {
    pid_t pid; /* 0 if it is not running */
    int port, peer_port;
    char name[24], dir[64];
    char endpoint[64]; /* "https://127.0.0.1:1234" */
    char cluster[256]; /* the members; "": itself */
    /* With `tls`: the authority's certificate, and a certificate and a key that serve the server
     * and its clients. */
    char ca_file[96], cert_file[96], key_file[96];
    /* The caller sets these before the start. */
    const char *password; /* of the user root; NULL: anybody may do anything */
    int token_ttl_s;      /* of the tokens that stand for a password; 0: etcd's own default */
    bool tls;             /* and clients have to show a certificate */
    int quota_mb;         /* of the database; 0: etcd's own default */
};

/* Returns false if etcd is not installed. */
bool etcd_server_start(struct etcd_server *s);
/* Starts one cluster of `n` members, with the settings of the first. */
bool etcd_cluster_start(struct etcd_server *s, size_t n);
/* Stops it and removes its directory. */
void etcd_server_stop(struct etcd_server *s);
/* kill -9. */
void etcd_server_kill(struct etcd_server *s);
/* Starts it again on the same ports with its data.  `awaited`: waits until it answers, which a
 * member without a quorum does not. */
void etcd_server_again(struct etcd_server *s, bool awaited);
/* Starts a server that was killed without its data, and without users. */
void etcd_server_again_empty(struct etcd_server *s);
/* Stops it in its tracks, and lets it go on. */
void etcd_server_pause(struct etcd_server *s);
void etcd_server_resume(struct etcd_server *s);

/* Sends a JSON text to a path of the gateway.  Returns the HTTP status, 0 without an answer; `ret`
 * gets the answer, at most size - 1 bytes of it.  As the user root, if there is a password. */
int etcd_server_ask(const struct etcd_server *s, const char *path, const char *body, char *ret,
                    size_t size);
/* A number of the server's metrics, by the beginning of its line; -1: there is none. */
int64_t etcd_server_metric(const struct etcd_server *s, const char *name);

#endif
