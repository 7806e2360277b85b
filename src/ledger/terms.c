/* The terms of an event as columns of its row: inserting an event and changing its terms write
 * them, reading an event reads them. */
#include <string.h>

#include "ledger/ledger_internal.h"

/* Channels are stored as their names, one per line: a name has no control characters. */
size_t terms_text_max(const struct event_terms *terms) { return terms->channels.n * NAME_SIZE; }

static struct db_value channels_arg(struct ledger *l, const struct event_terms *terms)
{
    size_t start = l->text.len;
    for (size_t i = 0; i < terms->channels.n; i++) {
        if (i)
            buf_char(&l->text, '\n');
        buf_str(&l->text, terms->channels.v[i]);
    }
    return terms->channels.n ? db_text(l->text.data + start, l->text.len - start)
                             : db_text(NULL, 0);
}

#define BIND_CHANNELS(field) ledger_arg(l, channels_arg(l, row));

void ledger_terms_args(struct ledger *l, const struct event_terms *row) { BIND(EVENT_TERMS); }

static void read_channels(struct db_stmt *stmt, int column, struct event_terms *terms)
{
    size_t len;
    const char *at = db_column_data(stmt, column, &len), *end = at ? at + len : NULL;
    while (at && at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t name_len = (size_t)((line ? line : end) - at);
        *vec_push(&terms->channels) = hf_strndup(at, name_len);
        at += name_len + 1;
    }
}

#define READ_OWNED(at, field) row->field = column_strdup(stmt, at);
#define READ_CHANNELS(at, field) read_channels(stmt, at, row);

void terms_from_row(struct db_stmt *stmt, struct event_terms *row) { READ(EVENT_TERMS); }
