/* See cell_log.h. */
#include "cell/cell_log.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define DEADLOCK_PAUSE_US 1000000
#define CYCLE_TEXT_SIZE 1024

void cell_log_changes(const struct node_status *was, const struct node_status *is)
{
    if (is->role == NODE_LEADING && was->role != NODE_LEADING)
        log_write(LOG_INFO, "this server is the master of the locks", "epoch", LOG_INT(is->epoch),
                  "index", LOG_INT(is->index), NULL);
    if (is->role == NODE_FOLLOWING && was->role == NODE_RESIGNING)
        log_write(LOG_INFO, "this server has resigned as the master of the locks", "index",
                  LOG_INT(is->index), NULL);
    if (is->role == NODE_FOLLOWING && was->role == NODE_LEADING)
        log_write(LOG_WARN, "this server was deposed as the master of the locks", "epoch",
                  LOG_INT(was->epoch), NULL);
    if (is->role == NODE_FOLLOWING && *is->master_url &&
        strcmp(is->master_url, was->master_url) != 0)
        log_write(LOG_INFO, "this server follows the master of the locks", "master", is->master_url,
                  "epoch", LOG_INT(is->epoch), NULL);
    uint64_t n_expired = is->counts.n_expired - was->counts.n_expired;
    if (n_expired)
        log_write(LOG_DEBUG, "sessions expired", "count", LOG_INT(n_expired), NULL);
}

/* The cycle is written "a/b (label) -> c (label)". */
void cell_log_deadlock(const struct cell_verdict *v, int64_t now_us, int64_t *last_us)
{
    char text[CYCLE_TEXT_SIZE] = "";
    size_t len = 0;
    if (*last_us && now_us - *last_us < DEADLOCK_PAUSE_US)
        return;
    *last_us = now_us;
    for (size_t i = 0; i < v->people.n && len < sizeof text; i++) {
        const struct cell_person *p = &v->people.v[i];
        int n = snprintf(text + len, sizeof text - len, "%s%s (%s)", i ? " -> " : "", p->name,
                         p->label);
        len += n > 0 ? (size_t)n : 0;
    }
    log_write(LOG_INFO, "a request for a lock would have closed a cycle", "cycle", text, NULL);
}
