/* See anomalies.h: plays the scripts on throwaway servers or files, and writes the result as JSON.
 * Main thread. */
#include "lab/anomalies.h"

#include <stdarg.h>

#include "base/json_put.h"
#include "holdfast.h"
#include "lab/scene.h"
#include "lab/servers.h"

extern const struct anomaly anomaly_double_sale, anomaly_deadlock, anomaly_open_transaction,
    anomaly_lost_commit, anomaly_gate_flushed, anomaly_ledger_fails, anomaly_counter_crash,
    anomaly_counter_async, anomaly_blind_delete, anomaly_get_then_delete, anomaly_blind_renewal,
    anomaly_clock_skew, anomaly_paused_holder, anomaly_redis_failover, anomaly_redlock_pause,
    anomaly_redlock_clock, anomaly_redlock_restart, anomaly_etcd_pause, anomaly_zookeeper_pause;

/* In the order of the lessons: the database, the layer in front of it, locks. */
const struct anomaly *const anomalies[ANOMALY_COUNT] = {
    &anomaly_double_sale,     &anomaly_deadlock,        &anomaly_open_transaction,
    &anomaly_lost_commit,     &anomaly_gate_flushed,    &anomaly_ledger_fails,
    &anomaly_counter_crash,   &anomaly_counter_async,   &anomaly_blind_delete,
    &anomaly_get_then_delete, &anomaly_blind_renewal,   &anomaly_clock_skew,
    &anomaly_paused_holder,   &anomaly_redis_failover,  &anomaly_redlock_pause,
    &anomaly_redlock_clock,   &anomaly_redlock_restart, &anomaly_etcd_pause,
    &anomaly_zookeeper_pause,
};
const char *const anomaly_side_names[ANOMALY_SIDES] = {"without protection", "with protection"};

static bool is_among(const char *actor, const char *const *actors)
{
    while (*actors && strcmp(*actors, actor) != 0)
        actors++;
    return *actors != NULL;
}

/* ---- which can be played, and where ---- */

__attribute__((format(printf, 3, 4))) static void
leave_out(struct anomalies_result *result, const struct anomaly *anomaly, const char *fmt, ...)
{
    struct anomaly_left_out *out = &result->left_out[result->n_left_out++];
    va_list args;
    va_start(args, fmt);
    out->anomaly = anomaly;
    (void)vsnprintf(out->why, sizeof out->why, fmt, args);
    va_end(args);
}

static bool has_driver(const char *name)
{
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(drivers[i]->name, name) == 0)
            return true;
    return false;
}

/* Returns whether the lock servers of an anomaly can be started; leaves it out if not. */
static bool has_lock_servers(struct anomalies_result *result, const struct anomaly *anomaly)
{
    char why[COORDINATOR_WHY_SIZE];
    if (!anomaly->driver)
        return true;
    if (!has_driver(anomaly->driver))
        leave_out(result, anomaly, "cannot be played here: there is no driver %s in this program",
                  anomaly->driver);
    else if (!coordinator_is_installed(anomaly->servers, why) ||
             (anomaly->steps_clock && !coordinator_has_steps(anomaly->servers, why)))
        leave_out(result, anomaly, "cannot be played here: %.100s", why);
    else
        return true;
    return false;
}

/* Plans to play an anomaly on the servers that it needs, if they are installed, or else on SQLite;
 * leaves it out if SQLite cannot show it. */
static void plan(struct anomalies_result *result, const struct anomaly *anomaly,
                 const char *const missing[2])
{
    bool wants_redis = is_among(SCENE_REDIS, anomaly->actors);
    const char *lacks = missing[0] ? missing[0] : wants_redis ? missing[1] : NULL;
    const char *const *actors = lacks ? anomaly->actors_sqlite : anomaly->actors;
    if (lacks)
        (void)snprintf(result->note, sizeof result->note,
                       "%s is not installed: only what SQLite can show is played, on SQLite",
                       lacks);
    if (!*actors)
        leave_out(result, anomaly, "%s", anomaly->not_on_sqlite);
    else if (has_lock_servers(result, anomaly))
        result->played[result->n++] = (struct anomaly_played){.anomaly = anomaly, .actors = actors};
}

static bool is_needed(const struct anomalies_result *result, const char *server)
{
    for (size_t i = 0; i < result->n; i++)
        if (is_among(server, result->played[i].actors))
            return true;
    return false;
}

/* ---- playing ---- */

static bool play_side(const struct scene_place *place, struct anomaly_played *played, int i,
                      struct hf_err *err)
{
    struct scene scene;
    if (!scene_open(&scene, place, played, &played->sides[i], err))
        return false;
    played->anomaly->play(&scene, i == 1);
    scene_close(&scene);
    if (scene.failed)
        *err = scene.err;
    return !scene.failed;
}

/* Plays `n` sides from `first` on, on the same lock servers. */
static bool play_sides(const struct scene_place *at, struct anomaly_played *played, int first,
                       int n, struct hf_err *err)
{
    const struct anomaly *anomaly = played->anomaly;
    struct coordinator coordinator = {0};
    struct scene_place place = *at;
    bool good = true;
    if (anomaly->driver) {
        place.coordinator = &coordinator;
        good = coordinator_open(&coordinator, at->servers, anomaly->servers, anomaly->steps_clock,
                                err);
    }
    for (int i = first; good && i < first + n; i++)
        good = play_side(&place, played, i, err);
    coordinator_close(&coordinator);
    return good;
}

/* Where a script breaks servers, each side has its own. */
static bool play_both_sides(const struct scene_place *place, struct anomaly_played *played,
                            struct hf_err *err)
{
    bool breaks_servers = played->anomaly->nodes[0];
    if (!breaks_servers)
        return play_sides(place, played, 0, ANOMALY_SIDES, err);
    return play_sides(place, played, 0, 1, err) && play_sides(place, played, 1, 1, err);
}

static bool ended_well(const struct anomaly_played *played)
{
    return played->sides[0].violated && !played->sides[1].violated &&
           strcmp(played->sides[1].evidence, SCENE_NOTHING_SOLD) != 0;
}

static bool play_all(struct anomalies_result *result, struct hf_err *err)
{
    struct servers servers = {0};
    char sqlite[sizeof servers.dir + 16];
    bool good = servers_open(&servers, err) &&
                (!is_needed(result, SCENE_POSTGRES) || servers_start_postgres(&servers, err)) &&
                (!is_needed(result, SCENE_REDIS) || servers_start_redis(&servers, err));
    (void)snprintf(sqlite, sizeof sqlite, "%s/seats.db", servers.dir);
    const struct strategy_settings settings = {STRATEGY_SETTINGS_USUAL,
                                               .postgres = servers.postgres.url,
                                               .redis = servers.redis.url, .sqlite = sqlite};
    const struct scene_place place = {.settings = &settings, .servers = &servers};
    result->ok = true;
    for (size_t i = 0; good && i < result->n; i++) {
        good = play_both_sides(&place, &result->played[i], err);
        result->ok = result->ok && ended_well(&result->played[i]);
    }
    servers_close(&servers);
    return good;
}

enum hf_status anomalies_run(const char *only, struct anomalies_result *ret, struct hf_err *err)
{
    struct anomalies_result result = {.at_ms = clock_wall_us(&clock_system) / 1000};
    const char *const missing[] = {servers_have_postgres() ? NULL : "PostgreSQL",
                                   servers_have_redis() ? NULL : "Redis"};
    for (size_t i = 0; i < ANOMALY_COUNT; i++)
        if (!only || strcmp(only, anomalies[i]->name) == 0)
            plan(&result, anomalies[i], missing);
    if (result.n + result.n_left_out == 0)
        return hf_err_set(err, HF_INVALID_REQUEST, "there is no anomaly %.40s", only);
    if (result.n == 0)
        return hf_err_set(err, HF_UNAVAILABLE, "%s%s%s", result.note, result.note[0] ? "; " : "",
                          result.left_out[0].why);
    if (!play_all(&result, err)) {
        anomalies_close(&result);
        return HF_UNAVAILABLE;
    }
    *ret = result;
    return HF_OK;
}

void anomalies_close(struct anomalies_result *result)
{
    for (size_t i = 0; i < result->n; i++)
        for (int k = 0; k < ANOMALY_SIDES; k++) {
            struct anomaly_side *side = &result->played[i].sides[k];
            for (size_t j = 0; j < side->steps.n; j++) {
                free(side->steps.v[j].text);
                free(side->steps.v[j].answer);
                free(side->steps.v[j].thinks);
            }
            vec_close(&side->steps);
            free(side->evidence);
        }
    *result = (struct anomalies_result){0};
}

/* ---- JSON ---- */

const char *anomaly_verdict(const struct anomaly_side *side)
{
    return side->violated ? "violated" : "protected";
}

static void put_side(const struct anomaly_played *played, int k, struct buf *out)
{
    const struct anomaly_side *side = &played->sides[k];
    json_open(out, NULL, '{');
    json_put_text(out, "name", anomaly_side_names[k]);
    json_put_text(out, "strategy", played->anomaly->strategies[k]);
    json_open(out, "actors", '[');
    for (size_t i = 0; played->actors[i]; i++)
        json_put_text(out, NULL, played->actors[i]);
    buf_str(out, "],\"steps\":[");
    for (size_t i = 0; i < side->steps.n; i++) {
        const struct anomaly_step *step = &side->steps.v[i];
        buf_printf(out, "%s{\"at_ms\":%.3f", i ? "," : "", (double)step->at_us / 1000);
        json_put_text(out, "from", step->from);
        json_put_text(out, "to", step->to);
        json_put_text(out, "text", step->text);
        json_put_text(out, "answer", step->answer);
        json_put_text(out, "thinks", step->thinks);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    json_put_text(out, "verdict", anomaly_verdict(side));
    json_put_text(out, "evidence", side->evidence);
    buf_char(out, '}');
}

void anomalies_json(const struct anomalies_result *result, struct buf *out)
{
    buf_lit(out, "{\"object\":\"lab.anomalies\"");
    json_put_time(out, "at", result->at_ms);
    json_put_text_or_null(out, "note", result->note);
    json_open(out, "anomalies", '[');
    for (size_t i = 0; i < result->n; i++) {
        const struct anomaly_played *played = &result->played[i];
        json_open(out, NULL, '{');
        json_put_text(out, "name", played->anomaly->name);
        json_put_text(out, "title", played->anomaly->title);
        json_put_text(out, "moral", played->anomaly->moral);
        json_put_text(out, "more", played->anomaly->more);
        json_open(out, "sides", '[');
        for (int k = 0; k < ANOMALY_SIDES; k++)
            put_side(played, k, out);
        buf_str(out, "]}");
    }
    buf_str(out, "],\"left_out\":[");
    for (size_t i = 0; i < result->n_left_out; i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "name", result->left_out[i].anomaly->name);
        json_put_text(out, "why", result->left_out[i].why);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    json_put_bool(out, "ok", result->ok);
    buf_char(out, '}');
}
