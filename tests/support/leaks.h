/* Memory that a library keeps to the end, and that is no leak (leaks.c).  A test that has some need
 * not search for leaks if nothing else is left. */
#ifndef HF_TESTS_SUPPORT_LEAKS_H
#define HF_TESTS_SUPPORT_LEAKS_H

#include <stddef.h>

/* The bytes that are allocated now; 0 if this build cannot tell. */
size_t leaks_now(void);
/* A library has been used for the first time since leaks_now() returned `before`: what it has left
 * allocated stays. */
void leaks_expect_since(size_t before);

#endif
