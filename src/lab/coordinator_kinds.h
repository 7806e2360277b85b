/* What coordinators.c has to know about each kind of server: how it is started and asked. */
#ifndef HF_LAB_COORDINATOR_KINDS_H
#define HF_LAB_COORDINATOR_KINDS_H

#include "lab/coordinators.h"
#include "lab/launch.h"

struct coordinator_node_kind {
    const char *name;
    const char *scheme;   /* of the lock driver's URLs */
    const char *database; /* the end of its URLs */
    size_t n_nodes;
    const char *title; /* of the server, in messages; NULL: there is none */
    /* Why its clock cannot be stepped; NULL: libfaketime can. */
    const char *no_steps;
    /* Returns whether it is installed. */
    bool (*is_installed)(void);
    /* Makes the data of a new server in node->dir, which is empty.  May be NULL. */
    bool (*create)(const struct coordinator_node *node, struct hf_err *err);
    /* Fills in the path and the arguments; texts that they need are in `text`. */
    bool (*prepare)(const struct coordinator_node *node, struct launch *l, char text[4][160]);
    /* Returns whether it answers, and copies its version. */
    bool (*answers)(int port, char ret_version[64]);
    int death_signal;
    /* It is the holdfastd beside this program.  It runs as the user of this process, since another
     * might not be able to read it, without the variables that are meant for another server, and
     * its clock has no steps. */
    bool is_ours;
};

extern const struct coordinator_node_kind coordinator_node_kinds[COORDINATOR_KINDS];

#endif
