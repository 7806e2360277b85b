/* See scene_nodes.h.  Every command has a connection of its own: a server of these scenes may have
 * been killed since the last one. */
#include "lab/scene_nodes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lab/scene_client.h"

#define KEY "lock:A-1"
#define WORDS_MAX 12
#define MAJORITY 2

size_t scene_node_index(const struct scene *s, const char *node)
{
    size_t i = 0;
    while (strcmp(s->anomaly->nodes[i], node) != 0)
        hf_check(++i < COORDINATOR_NODES_MAX && s->anomaly->nodes[i]);
    return i;
}

/* The reply is for freeReplyObject; NULL if the server cannot be reached.  One that was killed
 * refuses at once, so the timeout is only for one that stands still on a busy machine: no scene is
 * about that. */
static redisReply *ask(const struct scene *s, const char *node, int n, const char *const *words)
{
    const struct timeval timeout = {.tv_sec = 10};
    int port = s->coordinator->nodes[scene_node_index(s, node)].port;
    redisContext *redis = redisConnectWithTimeout("127.0.0.1", port, timeout);
    redisReply *reply = NULL;
    if (redis && !redis->err) {
        (void)redisSetTimeout(redis, timeout);
        reply = redisCommandArgv(redis, n, (const char **)(uintptr_t)words, NULL);
    }
    if (redis)
        redisFree(redis);
    return reply;
}

static redisReply *ask_line(const struct scene *s, const char *node, char *line)
{
    const char *words[WORDS_MAX];
    char *rest = NULL;
    int n = 0;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        hf_check(n < WORDS_MAX);
        words[n++] = word;
    }
    return ask(s, node, n, words);
}

/* Records the reply as the answer of a step, and frees it. */
static const char *answer(struct scene *s, size_t step, redisReply *reply)
{
    const char *text;
    if (!reply)
        text = scene_answer(s, step, "%s", SCENE_NO_ANSWER);
    else if (reply->type == REDIS_REPLY_INTEGER)
        text = scene_answer(s, step, "%lld", reply->integer);
    else
        text = scene_answer(s, step, "%s", reply->type == REDIS_REPLY_NIL ? "(nil)" : reply->str);
    freeReplyObject(reply);
    return text;
}

const char *scene_node(struct scene *s, const char *who, const char *node, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (s->failed)
        return "";
    size_t step = scene_request(s, who, node, "%s", line);
    return answer(s, step, ask_line(s, node, line));
}

long long scene_node_ask(struct scene *s, const char *node, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    redisReply *reply = ask_line(s, node, line);
    long long number = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    freeReplyObject(reply);
    return number;
}

/* ---- Redlock ---- */

/* Asks one server for the lock; false if it says no or cannot be reached. */
static bool lock_one(struct scene *s, const char *who, const char *node, bool is_cut_off,
                     int ttl_ms)
{
    if (!is_cut_off)
        return scene_is(scene_node(s, who, node, "SET " KEY " token-%s NX PX %d", who, ttl_ms),
                        "OK");
    size_t step = scene_request(s, who, node, "SET " KEY " token-%s NX PX %d", who, ttl_ms);
    (void)scene_answer(s, step, "%s", SCENE_NO_ANSWER);
    return false;
}

static void unlock_one(struct scene *s, const char *who, const char *node)
{
    static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
                                 " return redis.call('DEL', KEYS[1]) end return 0";
    char token[32];
    (void)snprintf(token, sizeof token, "token-%s", who);
    const char *const words[] = {"EVAL", script, "1", KEY, token};
    size_t step = scene_request(s, who, node, "EVAL if GET " KEY " = %s then DEL " KEY, token);
    (void)answer(s, step, ask(s, node, 5, words));
}

bool scene_redlock_lock(struct scene *s, const char *who, const char *cut_off, int ttl_ms)
{
    const char *const *nodes = s->anomaly->nodes;
    int64_t began_us = clock_monotonic_us(s->clock);
    int n = 0;
    bool got[COORDINATOR_NODES_MAX];
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++) {
        bool is_cut_off = cut_off && strcmp(cut_off, nodes[i]) == 0;
        got[i] = lock_one(s, who, nodes[i], is_cut_off, ttl_ms);
        n += got[i];
    }
    /* What is left of the TTL, less the drift that the article allows for. */
    int64_t elapsed_ms = (clock_monotonic_us(s->clock) - began_us) / 1000;
    int64_t valid_ms = ttl_ms - elapsed_ms - ttl_ms / 100 - 2;
    if (n >= MAJORITY && valid_ms > 0) {
        scene_think(s, "%d of 3: the lock is mine for %" PRId64 " ms.", n, valid_ms);
        return true;
    }
    scene_think(s, "%d of 3: no majority. I release and wait.", n);
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++)
        if (got[i])
            unlock_one(s, who, nodes[i]);
    return false;
}

static bool is_free_everywhere(struct scene *s, const char *who)
{
    (void)who;
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++)
        if (scene_node_ask(s, s->anomaly->nodes[i], "EXISTS " KEY) != 0)
            return false;
    return true;
}

void scene_redlock_await_expiry(struct scene *s, const char *who)
{
    scene_await(s, is_free_everywhere, who, "a lock expires on three servers");
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++)
        scene_note(s, s->anomaly->nodes[i], "the lock of %s expires", who);
}

void scene_redlock_url(struct scene *s, const char *cut_off, char ret[SERVER_URL_SIZE])
{
    int len = snprintf(ret, SERVER_URL_SIZE, "redlock://");
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++) {
        const struct coordinator_node *node = &s->coordinator->nodes[i];
        bool is_cut_off = cut_off && strcmp(cut_off, s->anomaly->nodes[i]) == 0;
        if (is_cut_off)
            relay_set(node->relay, RELAY_CLOSED);
        len += snprintf(ret + len, SERVER_URL_SIZE - (size_t)len, "%s127.0.0.1:%d", i ? "," : "",
                        is_cut_off ? relay_port(node->relay) : node->port);
    }
}

void scene_redlock_vouch(struct scene *s)
{
    for (size_t i = 0; i < COORDINATOR_NODES_MAX; i++)
        (void)scene_node_ask(s, s->anomaly->nodes[i], "SET holdfast:redlock:vouched 1");
}

/* ---- a server that forgets ---- */

#define FORGETS_SHOWN "redlock://R1,R2,R3"
#define FORGETS_TTL_MS 30000 /* a TTL that does not end during the scene */

static void forgets_article(struct scene *s, void (*break_r2)(struct scene *s))
{
    scene_note(s, "R3", "cannot be reached by Ann");
    bool ann =
        scene_redlock_lock(s, "Ann", "R3", FORGETS_TTL_MS) && scene_client_finds_it_free(s, "Ann");
    break_r2(s);
    bool bob =
        scene_redlock_lock(s, "Bob", NULL, FORGETS_TTL_MS) && scene_client_finds_it_free(s, "Bob");
    if (bob)
        scene_client_sell(s, "Bob", NULL);
    if (ann)
        scene_client_sell(s, "Ann", NULL);
}

static void forgets_driver(struct scene *s, void (*break_r2)(struct scene *s), int wait_s)
{
    char url[SERVER_URL_SIZE];
    scene_client_prepare(s);
    scene_redlock_vouch(s);
    scene_redlock_url(s, "R3", url);
    scene_note(s, "R3", "cannot be reached by Ann");
    struct scene_client how = {
        .url = url, .shown = FORGETS_SHOWN, .to = "R3", .ttl_s = FORGETS_TTL_MS / 1000};
    const char *ann = scene_client_lock(s, "Ann", &how);
    if (ann)
        scene_think(s, "R1 and R2: the lock is mine.");
    bool ann_buys = ann && scene_client_finds_it_free(s, "Ann");
    break_r2(s);
    scene_redlock_url(s, NULL, url);
    how.wait_s = wait_s;
    const char *bob = scene_client_lock(s, "Bob", &how);
    if (bob)
        scene_think(s, "R2 and R3: the lock is mine.");
    else
        scene_think(s, "No majority that can be trusted. I wait.");
    if (bob && scene_client_finds_it_free(s, "Bob"))
        scene_client_sell(s, "Bob", bob);
    if (ann_buys)
        scene_client_sell(s, "Ann", ann);
}

void scene_redlock_forgets(struct scene *s, bool is_protected, void (*break_r2)(struct scene *s),
                           int wait_s)
{
    if (is_protected)
        forgets_driver(s, break_r2, wait_s);
    else
        forgets_article(s, break_r2);
    scene_judge_tickets(s);
}
