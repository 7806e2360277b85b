/* The environment variables of Holdfast, which begin with HOLDFAST_ but for the keys of Stripe.
 * Both programs know the names of both, so that each can tell a misspelt variable from one that is
 * meant for the other. */
#ifndef HF_BASE_VARIABLES_H
#define HF_BASE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#define VARIABLES_PREFIX "HOLDFAST_"

/* `name` need not end in NUL. */
bool variables_know(const char *name, size_t len);

/* Whether the value is a secret, or a URL that may have a password in it.  PGPASSWORD is, which is
 * libpq's. */
bool variables_is_secret(const char *name, size_t len);

/* The known variable whose name differs least from this one; NULL if none is close enough to be
 * what the user meant. */
const char *variables_nearest(const char *name, size_t len);

/* The entry of `environment` (as environ(7) has it), from *at on, whose name begins with
 * HOLDFAST_ and is not known; NULL: there is none.  Sets *ret_len to the length of its name, and
 * *at to where the search goes on. */
const char *variables_next_unknown(char *const *environment, size_t *at, size_t *ret_len);

#endif
