/* How far the servers of a cell are: every server reports itself to the journal and reads the
 * reports of the others, so that people can see the cell and a master knows that there is another
 * server to take over.  Owner: the thread that runs the node. */
#include <stdio.h>
#include <string.h>

#include "cell/node_internal.h"

static struct known_server *known_find(struct node *n, const char *url)
{
    for (size_t i = 0; i < n->reports.known.n; i++)
        if (strcmp(n->reports.known.v[i].report.url, url) == 0)
            return &n->reports.known.v[i];
    return NULL;
}

void report_done(struct node *n, int64_t now_us)
{
    const struct journal_call *c = &n->journal.call;
    n->reports.due_us = now_us + REPORT_US;
    if (journal_is_failure(c->result))
        return;
    for (size_t i = 0; i < c->n_servers; i++) {
        struct known_server *k = known_find(n, c->servers[i].url);
        if (!k && n->reports.known.n < JOURNAL_SERVERS_MAX)
            k = vec_push(&n->reports.known);
        if (k && (k->changed_us == 0 || k->report.beat != c->servers[i].beat)) {
            k->report = c->servers[i];
            k->changed_us = now_us;
        }
    }
    n->reports.n_fresh = 0;
    for (size_t i = 0; i < n->reports.known.n; i++)
        if (now_us - n->reports.known.v[i].changed_us < REPORT_FRESH_US)
            n->reports.fresh[n->reports.n_fresh++] = n->reports.known.v[i].report;
    struct known_server *gone = c->gone ? known_find(n, c->gone) : NULL;
    if (gone)
        *gone = n->reports.known.v[--n->reports.known.n];
}

bool report_next(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->journal.call;
    if (!n->config.shared || now_us < n->reports.due_us)
        return false;
    c->op = JOURNAL_REPORT;
    (void)snprintf(c->self.url, sizeof c->self.url, "%s", n->config.url);
    c->self.index = n->replica.index;
    c->self.beat = ++n->reports.beat;
    c->gone = NULL;
    for (size_t i = 0; i < n->reports.known.n && !c->gone; i++)
        if (now_us - n->reports.known.v[i].changed_us > REPORT_GONE_US) {
            (void)snprintf(n->reports.gone, sizeof n->reports.gone, "%s",
                           n->reports.known.v[i].report.url);
            c->gone = n->reports.gone;
        }
    return true;
}

bool report_has_successor(const struct node *n, int64_t now_us)
{
    for (size_t i = 0; i < n->reports.known.n; i++)
        if (strcmp(n->reports.known.v[i].report.url, n->config.url) != 0 &&
            now_us - n->reports.known.v[i].changed_us < REPORT_LATELY_US)
            return true;
    return false;
}
