/* What lists have in common: ?limit=, cursors, and how their JSON ends.  A cursor says where the
 * last page ended; it means nothing to the client. */
#ifndef HF_API_PAGE_H
#define HF_API_PAGE_H

#include "api/call.h"

#define PAGE_LIMIT_DEFAULT 20

/* Reads ?limit= into *ret, which is left alone if there is none.  Returns false if the call has
 * been answered with 400. */
HF_MUST_USE bool page_limit(struct call *c, size_t max, size_t *ret);
/* Reads a text that entries must have into *ret; NULL if there is no such parameter.  Returns false
 * if the call has been answered with 400 because the text is not UTF-8. */
HF_MUST_USE bool page_filter(struct call *c, const char *name, const char **ret);
/* Reads a parameter that is true or false; if there is none, it is false.  Returns false if the
 * call has been answered with 400. */
HF_MUST_USE bool page_flag(struct call *c, const char *name, bool *ret);
/* Answers with 400 because of a malformed cursor. */
void page_bad_cursor(struct call *c);

void page_open(struct call *c);
/* The same with a number that is about the whole list, before its entries. */
void page_open_with(struct call *c, const char *name, int64_t value);
/* Separates the entries: call it before each of them. */
void page_next(struct call *c);
/* Answers with the page.  `cursor` NULL: there are no more entries. */
void page_close(struct call *c, const char *cursor);

#endif
