/* The brand of the pages for buyers: whose shop it is.  The file of --brand is JSON:
 *
 *   {"name":"Globe Theatre","color":"#7a1f2b","logo":"logo.svg",
 *    "imprint":"https://globe.example/imprint","terms":"https://globe.example/terms"}
 *
 * `name` is required.  What the pages are with it is made once, at start: copies of the documents
 * of web/ with a line above and links below, /web/brand.css, and the logo, which is a file beside
 * that of the brand.  pages.c serves these in place of what is in the program.
 *
 * The colour is adapted, so that it can be read (WCAG 2, AA): it is made darker on the light page
 * and lighter on the dark one, as far as it takes.  On the main thread, when the server starts and
 * stops; from any thread in between. */
#ifndef HF_API_BRAND_H
#define HF_API_BRAND_H

#include <stdbool.h>

#include "base/status.h"

struct brand;
struct static_file;

/* The message of a failure says what is wrong with the file. */
HF_MUST_USE bool brand_read(const char *path, struct brand **ret, struct hf_err *err);
/* For api.branded. */
const struct static_file *brand_files(const struct brand *b);
/* The colour as the light and the dark page have it, for the log; NULL: the brand has none. */
const char *brand_colors(const struct brand *b);
void brand_free(struct brand *b); /* accepts NULL */

#endif
