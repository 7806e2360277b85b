/* Where the names of rows stand in the picture of a plan: beside the ends of their rows, where they
 * cover no seat.  The map in a browser has them at the same places (web/seats/plan.js).  On the
 * main thread. */
#ifndef HF_CLI_PLAN_NAMES_H
#define HF_CLI_PLAN_NAMES_H

#include <stddef.h>

#include "base/vec.h"

#define PLAN_CHAR_WIDTH 0.6 /* of a character, in the size of its text: about */

struct plan_point {
    double x, y;
};

struct plan_seat {
    struct plan_point at;
    double radius;
};

struct plan_text {
    const char *words;    /* borrowed */
    struct plan_point at; /* its anchor */
    int side;             /* where it stands: left of that (-1), around it (0) or right of it (1) */
    double size, width;
};

struct plan_names {
    VEC(struct plan_seat) seats; /* all of the plan, in its order */
    VEC(struct plan_text) texts; /* of areas, and names that stand elsewhere than beside an end */
    struct plan_seat *by_x;      /* the same seats from left to right */
    double radius_max;
};

/* Once all seats and the texts of areas are known. */
void plan_names_prepare(struct plan_names *names);
/* The name of a row, and how many characters it has. */
struct plan_words {
    const char *text;
    size_t chars;
};

/* Finds the places for the name of a row, of the seats from `first` to before `end`; `where` is
 * "start", "end", "both" or "" as plans have it.  Returns how many places there are.  It looks at
 * the seats near the name, and where the name stands elsewhere also at all texts. */
size_t plan_names_place(struct plan_names *names, size_t first, size_t end, const char *where,
                        const struct plan_words *words, struct plan_text ret[2]);
void plan_names_close(struct plan_names *names);

#endif
