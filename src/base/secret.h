/* Memory for secrets: access keys, passwords, settings that may hold them.  It is left out of core
 * dumps, kept out of swap where the system's limits allow that, and wiped when it is freed.
 *
 * Each allocation takes whole pages, so a program makes few of them, at start and at a reload. */
#ifndef HF_BASE_SECRET_H
#define HF_BASE_SECRET_H

#include <stddef.h>

/* Zeroed memory.  Like hf_alloc it cannot fail. */
void *secret_alloc(size_t size);
/* Wipes and frees; `size` is that of the allocation.  Accepts NULL. */
void secret_free(void *memory, size_t size);

/* Overwrites, in a URL, what may be a password with x: what stands before the last @, and what
 * follows a question mark.  Leaves other texts alone. */
void secret_mask_url(char *text);

/* Copies the arguments of the program, and masks the URLs among the originals, which every user of
 * the machine can read (ps).  The copy ends in NULL, as argv does; it is freed with secret_free and
 * *ret_size. */
char **secret_take_arguments(char **argv, size_t *ret_size);

/* Forbids core dumps from here on, as far as the limits of the process allow. */
void secret_forbid_dumps(void);

#endif
