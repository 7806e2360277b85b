/* The HTTP API of Holdfast: what src/api offers to the program.  Requests become commands for the
 * engine (one file per resource), and verdicts become answers (problems.h, render.h).
 *
 *   src/http           src/api                                               src/engine
 *   request  -->  route -> handler: parse, judge, build the command  -->  queue, worker ...
 *   answer   <--  call_answer: verdict and rows -> problem or JSON   <--  pending_done
 *
 * Handlers run on HTTP threads and never block.  The functions of api_texts also run on a
 * worker, on the drawer and on the reader of long reads. */
#ifndef HF_API_API_H
#define HF_API_API_H

#include "api/samples.h"
#include "base/json_put.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "http/app.h"
#include "http/quota.h"

struct cell;
struct checkout;
struct checkout_config;
struct static_file;
struct wait_topics;

struct api {
    struct engine *engine;
    struct checkout *checkout;
    struct metrics *metrics;           /* for GET /metrics */
    bool has_pages;                    /* the pages are served, too */
    const struct static_file *branded; /* pages with a brand, and its files; NULL: there is none */
    unsigned stream_port;              /* where streams alone are served; 0: nowhere */
    struct samples *samples;           /* for GET /v1/ops/samples */
    struct wait_topics *wait_topics;   /* for streams of entries of waiting lists */
    struct cell *cell;                 /* the lock service; NULL: it is off */
    const char *cell_url;              /* how clients and other servers reach this server */
    const char *journal;               /* the kind of its journal: "sqlite" */
    const struct clock *clock;
    uint32_t sessions_max; /* that one access key may have open */
    struct gauge *ready;   /* set by api_app */
};

/* The application for server_config.  `api` is borrowed for the server's life. */
struct http_app api_app(struct api *api);

/* The limits of callers without a key that go with so many holds per minute. */
#define API_HOLD_RATE_MAX 1000000
void api_hold_limits(uint32_t holds_per_minute, struct quota_limits *ret);

/* The ring of samples that GET /v1/ops/samples shows; the program takes the samples. */
struct samples *api_samples_new(const struct metrics *m, const struct clock *clock);

/* The entries of waiting lists that clients follow.  Freed when neither the server nor the engine
 * runs any more. */
struct wait_topics *api_wait_topics_new(const struct clock *clock);
void api_wait_topics_free(struct wait_topics *topics); /* accepts NULL */
/* engine_config.waits_changed, with the topics as context. */
void api_waits_changed(void *topics, const struct wait_news *news, size_t n);

/* Says which provider answers name.  Once, before any thread renders; borrowed. */
void api_set_payments(const struct checkout_config *config);
/* checkout_config.render_notice */
void api_render_notice(const struct job_row *job, const struct command *command, struct buf *out);

/* For engine_config: answers, and the number of one is its HTTP status; maps as GET
 * /v1/events/{e}/seats shows them. */
extern const struct engine_texts api_texts;

#endif
