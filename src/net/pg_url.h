/* Checks a PostgreSQL URL before libpq sees it: libpq's own error messages repeat parts of the URL,
 * which may contain a password.  Pure functions. */
#ifndef HF_NET_PG_URL_H
#define HF_NET_PG_URL_H

#define PG_URL_FORM "postgres://USER:PASSWORD@HOST:PORT/DATABASE"

/* What is wrong with the URL, in words that repeat no part of it; NULL if no fault is found. */
const char *pg_url_fault(const char *url);

#endif
