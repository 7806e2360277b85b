/* The routes of the pages, which are served beside those of the API unless --pages is off. */
#ifndef HF_API_PAGES_H
#define HF_API_PAGES_H

#include "http/route.h"

/* Ends with a row without a path. */
extern const struct route page_routes[];

#endif
