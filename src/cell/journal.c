/* What all drivers of the journal share: the choice of one by URL, and a call as data.  No
 * state; any thread. */
#include "cell/journal.h"

#include <string.h>

static const struct journal_driver *const drivers[] = {&journal_sqlite, &journal_postgres,
                                                       &journal_etcd, NULL};

const struct journal_driver *journal_driver_for(const char *url)
{
    for (const struct journal_driver *const *d = drivers; *d; d++)
        for (const char *const *scheme = (*d)->schemes; *scheme; scheme++)
            if (strncmp(url, *scheme, strlen(*scheme)) == 0)
                return *d;
    return NULL;
}

void journal_run(struct journal *j, struct journal_call *c)
{
    const struct journal_driver *d = j->driver;
    c->err = (struct hf_err){0};
    switch (c->op) {
    case JOURNAL_READ:
        c->result = d->read(j, c->index, &c->page, &c->err);
        return;
    case JOURNAL_CLAIM:
        c->result = d->claim(j, &c->mandate, c->url, &c->err);
        return;
    case JOURNAL_APPEND:
        c->result = d->append(j, &c->mandate, c->index, c->id, c->data, c->len, &c->err);
        return;
    case JOURNAL_PUT_CHUNK:
        c->result = d->put_chunk(j, &c->mandate, c->index, c->no, c->data, c->len, &c->err);
        return;
    case JOURNAL_POINT:
        c->result = d->point(j, &c->mandate, c->index, c->n_chunks, &c->err);
        return;
    case JOURNAL_LOAD:
        c->snapshot.len = 0;
        c->result = d->load(j, &c->snapshot_index, &c->snapshot, &c->err);
        return;
    case JOURNAL_TRIM:
        c->more = false;
        c->result = d->trim(j, &c->mandate, &c->more, &c->err);
        return;
    case JOURNAL_REPORT:
        c->n_servers = 0;
        c->result = d->report(j, &c->self, c->gone, c->servers, JOURNAL_SERVERS_MAX, &c->n_servers,
                              &c->err);
        return;
    }
    hf_check(!"an unknown call");
}

void journal_call_close(struct journal_call *call)
{
    journal_page_close(&call->page);
    buf_close(&call->snapshot);
}
