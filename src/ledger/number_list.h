/* Lists of small numbers as rows store them, "[1,2,3]": the seats of a hold, and its areas as
 * [area, quantity, area, quantity ...].  Pure. */
#ifndef HF_LEDGER_NUMBER_LIST_H
#define HF_LEDGER_NUMBER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the list to `out`. */
void number_list_write(const uint32_t *numbers, uint32_t n, struct buf *out);
/* Reads a list into `numbers`, which has room for (len + 1) / 2 of them.  Returns false if
 * number_list_write would not have written the text, or if a number is not below EVENT_SEATS_MAX.
 */
bool number_list_parse(const char *text, size_t len, uint32_t *numbers, uint32_t *ret_n);

#endif
