/* The routes of the pages, which are served beside those of the API unless --pages is off. */
#ifndef HF_API_PAGES_H
#define HF_API_PAGES_H

#include "http/route.h"

struct problem;

/* Ends with a row without a path. */
extern const struct route page_routes[];

/* http_app.refuse: a browser that asks for a path that does not exist gets a page that says so;
 * everybody else gets the problem. */
void pages_refuse(struct request *r, const struct problem *problem, const char *detail);

#endif
