/* What can be said of a PostgreSQL URL before libpq sees it.  libpq's own words about one repeat
 * parts of it, among which may be a password.  Pure functions. */
#ifndef HF_BASE_PG_URL_H
#define HF_BASE_PG_URL_H

#define PG_URL_FORM "postgres://USER:PASSWORD@HOST:PORT/DATABASE"

/* What is wrong with it, in words that show no part of it; NULL: nothing that shows here. */
const char *pg_url_fault(const char *url);

#endif
