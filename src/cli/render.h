/* JSON as text for people.  Control characters in it, which a terminal might obey, are shown as
 * question marks.  Pure functions. */
#ifndef HF_CLI_RENDER_H
#define HF_CLI_RENDER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

void render_text(struct buf *b, const char *text, size_t len);
/* Appends a value on one line: lists with commas, objects as name=value.  NULL is a dash. */
void render_value(struct buf *b, const json_t *value);
/* Appends an amount in the smallest unit of a currency as people write it: 6500 usd is 65.00. */
void render_money(struct buf *b, int64_t amount, const char *currency);
/* Appends an object, one member per line, their values aligned.  Lists of objects take a line for
 * each of them.  If the object has a currency, its amounts and prices are money. */
void render_object(struct buf *b, const json_t *object);
/* Appends one line per object of the list `rows`, with these members in aligned columns.  `columns`
 * ends with NULL.  Amounts of a row that has a currency are money. */
void render_table(struct buf *b, const json_t *rows, const char *const *columns, bool has_header);
/* Appends the answer of GET /v1/events/{e}/seats. */
void render_map(struct buf *b, const json_t *map);

#endif
