/* Lists of small numbers as rows store them, "[1,2,3]": the seats of a hold, and its areas as
 * [area, quantity, area, quantity ...].  Pure. */
#ifndef HF_LEDGER_NUMBER_LIST_H
#define HF_LEDGER_NUMBER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/rows.h"

/* Appends the list to `out`. */
void number_list_write(const uint32_t *numbers, uint32_t n, struct buf *out);
/* Reads a list into `numbers`, which has room for (len + 1) / 2 of them.  Returns false if
 * number_list_write would not have written the text, or if a number is not below EVENT_SEATS_MAX.
 */
bool number_list_parse(const char *text, size_t len, uint32_t *numbers, uint32_t *ret_n);

/* The prices of a hold's places, "[price,places,price,places ...]".  A run of another ticket type
 * than the first has its places and its type in a list: "[6500,2,4000,[1,2]]" is two places of the
 * first type and one of the type with the index 2.  So places of the first type are stored as they
 * were before there were types, and a version of that time finds any other list damaged, and none
 * wrong.  Bytes that `n` runs take at most: two numbers of 20 digits with their commas each, and
 * "[,15]". */
#define PRICE_LIST_MAX(n) ((size_t)(n)*47 + 2)
void price_list_write(const struct price_run *runs, uint32_t n, struct buf *out);
/* Reads a list into `runs`, which has room for (len + 1) / 4 of them.  Returns false if
 * price_list_write would not have written the text, or if a type is not below TYPES_MAX. */
bool price_list_parse(const char *text, size_t len, struct price_run *runs, uint32_t *ret_n);

/* The blocked places of an area, "[channel, places, channel, places ...]"; a pair takes at most 22
 * bytes.  block_list_parse appends to `ret`, and returns false if the text is damaged. */
#define BLOCK_LIST_MAX(n) ((size_t)(n)*22 + 2)
void block_list_write(const struct area_blocks *blocks, struct buf *out);
bool block_list_parse(const char *text, size_t len, struct area_blocks *ret);

/* What an entry of the waiting list waits for: section, tier and area, each 0 for any or none and
 * else 1 + its index; quantity, category, accessible and adjacent; then how many places are of each
 * ticket type, without the zeros at the end.  wish_list_parse returns false if wish_list_write would
 * not have written the text. */
#define WISH_NUMBERS 7
#define WISH_LIST_MAX (2 + (WISH_NUMBERS + TYPES_MAX) * 8)
void wish_list_write(const struct wait_wish *wish, struct buf *out);
bool wish_list_parse(const char *text, size_t len, struct wait_wish *ret);

#endif
