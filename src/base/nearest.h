/* What a misspelt word was meant to be.  Pure. */
#ifndef HF_BASE_NEAREST_H
#define HF_BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_LEN_MAX 64 /* longer words are near to nothing */

/* The word of the list that can be made of `word` with the fewest mistakes, each a character that
 * is missing, too many, wrong or swapped with the next; NULL if it takes more than `mistakes_max`.
 */
const char *nearest_word(const char *word, size_t len, const char *const *list, size_t n,
                         size_t mistakes_max);

#endif
