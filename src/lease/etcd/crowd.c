/* See crowd.h. */
#include "lease/etcd/crowd.h"

#include <string.h>

#include "base/hash.h"

/* Places lie in groups, and a lease's number, which is random, says in which.  A place that finds
 * its group full takes that of another, which is forgotten. */
#define GROUP 8
#define GROUPS 512
#define PLACES (GROUP * GROUPS)
#define LINES 16
/* How old the head of a line may be: 2 ms per place before the waiter, as often as src/lock asks,
 * but within these bounds. */
#define AGE_US_PER_PLACE INT64_C(2000)
#define HEAD_AGE_MIN_US INT64_C(20000)
#define HEAD_AGE_MAX_US INT64_C(100000)
/* The whole line may be older: it tells who stands between the head and a waiter, and nobody gets
 * in between. */
#define WHOLE_AGE_US INT64_C(5000000)
/* A thread that reads a line anew is waited for this long. */
#define READING_US INT64_C(500000)
/* A place that was neither asked for nor waited on for longer is not kept alive by others. */
#define ACTIVE_US INT64_C(2000000)

struct reading {
    int64_t read_us;    /* boot time; 0: never */
    int64_t reading_us; /* since when a thread reads it anew; 0: none does */
    struct etcd_line line;
};

struct crowd_line {
    char base[sizeof((struct subject *)0)->base];
    size_t base_len;
    struct reading readings[2]; /* by enum crowd_part */
};

struct crowd {
    pthread_mutex_t mutex;
    struct crowd_place places[PLACES];
    struct crowd_line lines[LINES];
    size_t due_at; /* where the next search for leases that are due begins */
};

struct crowd *crowd_new(void)
{
    struct crowd *c = hf_alloc(sizeof *c);
    hf_check(pthread_mutex_init(&c->mutex, NULL) == 0);
    return c;
}

void crowd_free(struct crowd *c)
{
    for (size_t i = 0; i < LINES; i++) {
        etcd_line_close(&c->lines[i].readings[CROWD_HEAD].line);
        etcd_line_close(&c->lines[i].readings[CROWD_WHOLE].line);
    }
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

/* ---- places ---- */

static struct crowd_place *group_of(struct crowd *c, int64_t lease)
{
    return &c->places[(uint64_t)lease / 2 % GROUPS * GROUP];
}

/* NULL: it is not known. */
static struct crowd_place *find(struct crowd *c, int64_t lease)
{
    struct crowd_place *group = group_of(c, lease);
    for (size_t i = 0; i < GROUP; i++)
        if (group[i].lease == lease)
            return &group[i];
    return NULL;
}

/* Where a new place goes. */
static struct crowd_place *make(struct crowd *c, int64_t lease)
{
    struct crowd_place *group = group_of(c, lease), *place = &group[0];
    for (size_t i = 0; i < GROUP && place->lease; i++)
        if (!group[i].lease || group[i].refreshed_us < place->refreshed_us)
            place = &group[i];
    *place = (struct crowd_place){.lease = lease};
    return place;
}

bool crowd_find(struct crowd *c, int64_t lease, struct crowd_place *ret)
{
    pthread_mutex_lock(&c->mutex);
    const struct crowd_place *p = find(c, lease);
    if (p)
        *ret = *p;
    pthread_mutex_unlock(&c->mutex);
    return p != NULL;
}

void crowd_note(struct crowd *c, int64_t lease, int64_t create, size_t position, size_t count)
{
    pthread_mutex_lock(&c->mutex);
    struct crowd_place *p = find(c, lease);
    p = p ? p : make(c, lease);
    p->create = create;
    p->position = position;
    p->count = count;
    pthread_mutex_unlock(&c->mutex);
}

void crowd_forget(struct crowd *c, int64_t lease)
{
    pthread_mutex_lock(&c->mutex);
    struct crowd_place *p = find(c, lease);
    if (p)
        p->lease = 0;
    pthread_mutex_unlock(&c->mutex);
}

void crowd_refreshed(struct crowd *c, int64_t lease, int64_t now_us, int64_t ttl_ms, int64_t term)
{
    pthread_mutex_lock(&c->mutex);
    struct crowd_place *p = find(c, lease);
    if (p && ttl_ms == 0) {
        p->lease = 0;
    } else if (p && p->refreshed_us <= now_us) {
        p->refreshed_us = now_us;
        p->ttl_ms = ttl_ms;
        p->term = term;
    }
    pthread_mutex_unlock(&c->mutex);
}

static int64_t last_us(const struct crowd_place *p)
{
    return p->asked_us > p->refreshed_us ? p->asked_us : p->refreshed_us;
}

size_t crowd_due(struct crowd *c, int64_t lease, int64_t now_us, int64_t before_us, size_t max,
                 int64_t *ret_leases)
{
    size_t n = 1;
    ret_leases[0] = lease;
    pthread_mutex_lock(&c->mutex);
    if (find(c, lease))
        find(c, lease)->asked_us = now_us;
    for (size_t i = 0; i < PLACES && n < max; i++) {
        struct crowd_place *p = &c->places[c->due_at];
        c->due_at = (c->due_at + 1) % PLACES;
        if (!p->lease || last_us(p) >= before_us || now_us - p->active_us > ACTIVE_US)
            continue;
        p->asked_us = now_us;
        ret_leases[n++] = p->lease;
    }
    pthread_mutex_unlock(&c->mutex);
    return n;
}

int64_t crowd_refreshed_ago_us(struct crowd *c, int64_t lease, int64_t now_us)
{
    int64_t ago_us = INT64_MAX;
    pthread_mutex_lock(&c->mutex);
    struct crowd_place *p = find(c, lease);
    if (p) {
        p->active_us = now_us;
        ago_us = last_us(p) ? now_us - last_us(p) : INT64_MAX;
    }
    pthread_mutex_unlock(&c->mutex);
    return ago_us;
}

/* ---- lines ---- */

static struct crowd_line *line_at(struct crowd *c, const struct subject *s)
{
    return &c->lines[hash_keyed(s->base, s->base_len) % LINES];
}

static bool is_of(const struct crowd_line *x, const struct subject *s)
{
    return x->base_len == s->base_len && memcmp(x->base, s->base, s->base_len) == 0;
}

static bool is_in_line(const struct etcd_line *line, int64_t create)
{
    size_t from = 0, to = line->all.n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (line->all.v[middle].create < create)
            from = middle + 1;
        else
            to = middle;
    }
    return from < line->all.n && line->all.v[from].create == create;
}

/* Finds the line of a name, or makes it in place of another one. */
static struct crowd_line *line_of(struct crowd *c, const struct subject *s)
{
    struct crowd_line *x = line_at(c, s);
    if (is_of(x, s))
        return x;
    memcpy(x->base, s->base, s->base_len);
    x->base_len = s->base_len;
    for (size_t i = 0; i < 2; i++)
        x->readings[i].read_us = x->readings[i].reading_us = 0;
    return x;
}

/* Can the reading be used?  If not, the caller reads it, unless another thread does. */
static bool is_usable(struct reading *r, int64_t now_us, int64_t age_us, bool *ret_others_read)
{
    *ret_others_read = r->reading_us && now_us - r->reading_us < READING_US;
    if (r->read_us && (now_us - r->read_us <= age_us || *ret_others_read))
        return true;
    if (!*ret_others_read)
        r->reading_us = now_us;
    return false;
}

/* Those who stood in the whole line up to the waiter, without those who have left at its head. */
static size_t far_position(const struct etcd_line *whole, const struct etcd_line *head,
                           int64_t create)
{
    size_t n = 0;
    int64_t first = head->all.n ? head->all.v[0].create : 0;
    for (size_t i = 0; i < whole->all.n && whole->all.v[i].create <= create; i++)
        n += whole->all.v[i].create >= first;
    return n;
}

static enum crowd_answer judge(struct crowd_line *x, const struct subject *s,
                               const struct crowd_place *place, int64_t now_us,
                               enum crowd_part *ret_part, size_t *ret_position)
{
    struct reading *head = &x->readings[CROWD_HEAD], *whole = &x->readings[CROWD_WHOLE];
    int64_t age_us = AGE_US_PER_PLACE * (int64_t)place->position;
    bool others_read;
    age_us = age_us < HEAD_AGE_MIN_US   ? HEAD_AGE_MIN_US
             : age_us < HEAD_AGE_MAX_US ? age_us
                                        : HEAD_AGE_MAX_US;
    *ret_position = place->position;
    *ret_part = CROWD_HEAD;
    if (!is_usable(head, now_us, age_us, &others_read))
        return others_read ? CROWD_WAITS : CROWD_STALE;
    const struct etcd_line *line = &head->line;
    if (place->create > line->revision)
        return CROWD_WAITS; /* it came later */
    bool is_far = line->all.n && line->count > line->all.n &&
                  line->all.v[line->all.n - 1].create < place->create;
    if (!is_far) {
        *ret_position = etcd_line_position(line, place->create);
        bool is_others_turn =
            *ret_position <= WAITER_NEAR && etcd_line_turn(line, place->create) > 0;
        return is_in_line(line, place->create) && !is_others_turn &&
                       !etcd_line_is_free(line, s->mode, place->create)
                   ? CROWD_WAITS
                   : CROWD_ASK;
    }
    *ret_part = CROWD_WHOLE;
    if (place->create > whole->line.revision && !whole->reading_us)
        whole->read_us = 0;
    if (!is_usable(whole, now_us, WHOLE_AGE_US, &others_read))
        return others_read ? CROWD_WAITS : CROWD_STALE;
    if (place->create > whole->line.revision)
        return CROWD_WAITS;
    *ret_position = far_position(&whole->line, line, place->create);
    return is_in_line(&whole->line, place->create) ? CROWD_WAITS : CROWD_ASK;
}

enum crowd_answer crowd_judge(struct crowd *c, const struct subject *s,
                              const struct crowd_place *place, int64_t now_us,
                              enum crowd_part *ret_part, size_t *ret_position)
{
    pthread_mutex_lock(&c->mutex);
    enum crowd_answer answer = judge(line_of(c, s), s, place, now_us, ret_part, ret_position);
    pthread_mutex_unlock(&c->mutex);
    return answer;
}

bool crowd_is_there(struct crowd *c, const struct subject *s, int64_t now_us)
{
    pthread_mutex_lock(&c->mutex);
    const struct crowd_line *x = line_at(c, s);
    const struct reading *head = &x->readings[CROWD_HEAD];
    bool is_there = is_of(x, s) && head->read_us && now_us - head->read_us < READING_US &&
                    head->line.count > CROWD_MIN;
    pthread_mutex_unlock(&c->mutex);
    return is_there;
}

void crowd_line_note(struct crowd *c, const struct subject *s, enum crowd_part part,
                     struct etcd_line *line, int64_t now_us)
{
    pthread_mutex_lock(&c->mutex);
    struct reading *r = &line_of(c, s)->readings[part];
    if (!r->read_us || line->revision >= r->line.revision) {
        struct etcd_line before = r->line;
        r->line = *line;
        *line = before;
        r->read_us = now_us;
    }
    r->reading_us = 0;
    pthread_mutex_unlock(&c->mutex);
    vec_clear(&line->all);
}
