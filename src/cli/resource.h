/* The commands on a server's resources, as tables.  `holdfast hold renew HOLD --ttl 5m` is a verb:
 * a method, a path, and the options that become members of the body or of the query.  The file of
 * each resource (event.c, hold.c, waitlist.c, booking.c, refund.c, audit.c, cell.c) lists its verbs;
 * resource.c parses the command line, makes the request and prints the answer.  Main thread. */
#ifndef HF_CLI_RESOURCE_H
#define HF_CLI_RESOURCE_H

#include "cli/remote.h"

enum param_kind {
    PARAM_TEXT,
    PARAM_INTEGER,
    PARAM_DURATION, /* in milliseconds */
    PARAM_TRUE,     /* takes no value */
    PARAM_FALSE,    /* the same */
    PARAM_JSON,
    PARAM_TEXTS,      /* a list; may be repeated */
    PARAM_NUMBERS,    /* NAME=NUMBER: an object; may be repeated */
    PARAM_NAMES,      /* NAME=TEXT: an object; may be repeated */
    PARAM_PLACES,     /* NAME=NUMBER or NAME=NUMBER:TYPE: an object; may be repeated */
    PARAM_TYPE,       /* ID or ID:NAME: a list of ticket types; may be repeated */
    PARAM_TYPE_PRICE, /* ID:NAME=NUMBER, of the same list; may be repeated */
    PARAM_SECTION,    /* NAME:ROWSxSEATS:PRICE[:TIER]: a list of sections; may be repeated */
    PARAM_AREA,       /* NAME:CAPACITY:PRICE[:PLAN_AREA]: a list of areas; may be repeated */
    PARAM_POINT,      /* X,Y: an object */
    PARAM_FILE,       /* a file with the value as a JSON object, - for standard input */
    PARAM_BODY,       /* a file with the whole body, - for standard input */
};

/* An option, and the member that it becomes: of the body, or of the query if the method is GET. */
struct param {
    const char *option; /* without its dashes */
    enum param_kind kind;
    const char *member; /* "add.seats" is the member `seats` of the object `add` */
    bool is_required;
    bool may_be_none; /* the value "none" is null */
};

struct resource_call {
    struct remote remote;
    const struct verb *verb;
    bool json;
    int64_t limit;    /* rows of a list; 0: all */
    int64_t pause_ms; /* of audit --follow; 0: do not follow */
    char *operand;    /* the id; owned; NULL: none */
    json_t *fields;   /* the body or the query */
    struct http_response answer;
};

struct verb {
    const char *name, *method;
    const char *path;           /* %s is the operand, which is an id */
    const char *operand;        /* its name in messages; NULL: none */
    const char *operand_member; /* the operand is this field, and not part of the path */
    const char *rest;           /* the operands behind it are the list of this member; NULL: none */
    const struct param *params; /* ends with a zeroed one; NULL: none */
    const char *const *columns; /* the members of a list to show; NULL: the answer is no list */
    int64_t page_max;           /* rows of a page of the list */
    void (*render)(struct buf *b, const json_t *answer); /* NULL: render_object */
    int (*run)(struct resource_call *c); /* NULL: one request, or the pages of a list */
};

struct resource {
    const char *name, *usage;
    const struct verb *verbs; /* ends with a zeroed one.  A single verb without a name has no word
                                 on the command line */
};

/* Runs `holdfast NAME VERB ...`; argv[0] is the resource's name. */
int resource_main(const struct resource *resource, int argc, char **argv);

/* Appends the path of the call's verb, and its query if the method is GET. */
void resource_path(const struct resource_call *c, struct buf *ret);
/* Writes out `b` and empties it.  Returns an exit code, with a message if it cannot be written. */
int resource_print(const struct resource_call *c, struct buf *b);

#endif
