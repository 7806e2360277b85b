/* What `holdfast cell status` shows of one moment: the servers of the lock service, the names that
 * most wait for, and the longest waits.  Made from answers of the API.  Pure functions. */
#ifndef HF_CLI_CELL_PICTURE_H
#define HF_CLI_CELL_PICTURE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

#define PICTURE_ROWS 10 /* of the busiest names, and of the longest waits */

/* Zeroed before its first use. */
struct cell_picture {
    json_t *cell;     /* the answer of GET /v1/cell */
    json_t *busiest;  /* names, the one with most waiters first; NULL: they are not known */
    json_t *waits;    /* waiters, the one that has waited longest first; NULL with `busiest` */
    bool is_cut;      /* more names are awaited than were looked at */
    bool is_standbys; /* a standby was asked, which does not know how long somebody has waited */
};

/* Takes in a page of GET /v1/locks?waiting=true. */
void picture_add(struct cell_picture *p, const json_t *page);
/* Appends the picture as text. */
void picture_render(struct buf *b, const struct cell_picture *p);
/* The picture as JSON; for json_decref. */
json_t *picture_json(const struct cell_picture *p);
/* The URL of the master; NULL: none is known. */
const char *picture_master(const struct cell_picture *p);
void picture_close(struct cell_picture *p); /* accepts a zeroed struct; zeroes it */

#endif
