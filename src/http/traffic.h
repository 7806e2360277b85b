/* What is counted and logged of connections, requests, answers and streams.  Every HTTP thread
 * counts. */
#ifndef HF_HTTP_TRAFFIC_H
#define HF_HTTP_TRAFFIC_H

#include "base/metrics.h"
#include "http/quota.h"
#include "http/route_metrics.h"

struct request;
struct server_config;

struct traffic {
    struct counter accepted;    /* requests that arrived whole */
    struct counter completed;   /* those of them that were answered */
    struct counter *answers[6]; /* by class of status; 0 and 1 unused */
    struct route_metrics routes;
    struct counter *too_soon[QUOTA_RATES]; /* refused for the pace of their address */

    struct gauge *connections;
    struct counter *turned_away, *evicted; /* connections without a place, and that gave theirs */

    struct gauge *streams;
    struct histogram *stream_lag;
    struct counter *messages, *dropped; /* of streams; streams whose readers were too slow */
};

void traffic_open(struct traffic *t, const struct server_config *config, size_t connections_max);
void traffic_close(struct traffic *t);
/* Counts and logs an answer. */
void traffic_note_answer(const struct request *r);

#endif
