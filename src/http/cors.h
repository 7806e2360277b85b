/* The web pages that may read answers (--cors-origin).  Credentials are never allowed: pages send a
 * bearer key or nothing, so no cookie can be abused.  Parsed once at start; any thread reads it. */
#ifndef HF_HTTP_CORS_H
#define HF_HTTP_CORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define CORS_ORIGINS_MAX 32

struct cors {
    const char **origins; /* ends with NULL; {"*", NULL}: any page may.  NULL: CORS is off */
};

extern const char cors_expose[], cors_headers[], cors_max_age[];

/* Parses a list such as "https://shop.example,http://localhost:3000", or "*". */
HF_MUST_USE bool cors_parse(const char *text, struct cors *ret, struct hf_err *err);
void cors_close(struct cors *c); /* accepts a zeroed struct */

bool cors_any(const struct cors *c);
/* The value for Access-Control-Allow-Origin, which lives as long as `c`; NULL: none.  `origin` is
 * the request's header, or NULL if there is none; it need not end in NUL. */
const char *cors_match(const struct cors *c, const char *origin, size_t len);

#endif
