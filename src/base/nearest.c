/* See nearest.h. */
#include "base/nearest.h"

#include <string.h>

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

/* How many characters have to be inserted, removed, replaced or swapped with the next to make one
 * text of the other.  Both have at most NEAREST_LEN_MAX characters. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t d[NEAREST_LEN_MAX + 1][NEAREST_LEN_MAX + 1];
    for (size_t i = 0; i <= a_len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] =
                min(min(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a_len][b_len];
}

const char *nearest_word(const char *word, size_t len, const char *const *list, size_t n,
                         size_t mistakes_max)
{
    const char *nearest = NULL;
    size_t least = mistakes_max + 1;
    for (size_t i = 0; i < n && len <= NEAREST_LEN_MAX; i++) {
        size_t list_len = strlen(list[i]);
        size_t mistakes =
            list_len <= NEAREST_LEN_MAX ? distance(word, len, list[i], list_len) : least;
        if (mistakes < least) {
            least = mistakes;
            nearest = list[i];
        }
    }
    return nearest;
}
