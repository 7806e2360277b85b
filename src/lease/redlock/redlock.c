/* The Redlock driver: leases on a majority of three or more independent Redis servers (5 or later).
 * See redlock.h for its files.  A call needs a majority of the servers; the others may be down,
 * hang, or answer nonsense. */
#include <stdlib.h>
#include <string.h>

#include "lease/redlock/redlock.h"
#include "lease/redlock/scripts.h"

/* When a majority has answered, the other servers get this part of timeout_ms, within bounds. */
#define SHORT_PART 8
#define SHORT_MIN_MS 20
#define SHORT_MAX_MS 250

extern const struct lease_driver lease_redlock;

static const struct redis_arg scripts[N_SCRIPTS] = {
    [SCRIPT_LOCK] = {REDLOCK_LOCK, sizeof REDLOCK_LOCK - 1},
    [SCRIPT_RENEW] = {REDLOCK_RENEW, sizeof REDLOCK_RENEW - 1},
    [SCRIPT_RELEASE] = {REDLOCK_RELEASE, sizeof REDLOCK_RELEASE - 1},
    [SCRIPT_FENCE] = {REDLOCK_FENCE, sizeof REDLOCK_FENCE - 1},
    [SCRIPT_BREAK] = {REDLOCK_BREAK, sizeof REDLOCK_BREAK - 1},
    [SCRIPT_INSPECT] = {REDLOCK_INSPECT, sizeof REDLOCK_INSPECT - 1},
    [SCRIPT_LOOK] = {REDLOCK_LOOK, sizeof REDLOCK_LOOK - 1},
    [SCRIPT_JOIN] = {REDLOCK_JOIN, sizeof REDLOCK_JOIN - 1},
};

static void redlock_close(struct lease *l)
{
    struct redlock *r = redlock_of(l);
    for (size_t i = 0; i < r->n_servers; i++) {
        struct redlock_server *s = &r->servers[i];
        redis_caller_close(&s->caller);
        vec_close(&s->got);
        redis_address_close(&s->address);
    }
    redis_link_close(&r->waiter.messages);
    if (atomic_fetch_sub(&r->health->refs, 1) == 1)
        free(r->health);
    free(r->servers);
    free(r);
}

/* Takes ownership of the addresses and of one reference to `health`. */
static struct redlock *handle_new(const struct redis_address *addresses, size_t n,
                                  const struct lease_options *options, int64_t max_ttl_ms,
                                  struct redlock_health *health)
{
    struct redlock *r = hf_alloc(sizeof *r);
    int64_t short_ms = options->timeout_ms / SHORT_PART;
    short_ms = short_ms < SHORT_MIN_MS ? SHORT_MIN_MS : short_ms;
    r->lease.driver = &lease_redlock;
    r->lease.ttl_max_ms = r->max_ttl_ms = max_ttl_ms;
    r->clock = options->clock;
    r->timeout_ms = options->timeout_ms;
    r->short_ms = short_ms < SHORT_MAX_MS ? short_ms : SHORT_MAX_MS;
    r->n_servers = n;
    r->majority = n / 2 + 1;
    r->health = health;
    r->servers = hf_alloc(n * sizeof *r->servers);
    random_init_system(&r->random);
    for (size_t i = 0; i < n; i++) {
        struct redlock_server *s = &r->servers[i];
        s->address = addresses[i];
        redis_link_init(&s->caller.link, &s->address, r->clock, r->short_ms);
        redis_caller_init(&s->caller, scripts, N_SCRIPTS);
    }
    redis_link_init(&r->waiter.messages, &r->servers[0].address, r->clock, r->short_ms);
    return r;
}

/* Opens if a majority can be connected, whether the servers count yet or not. */
static enum hf_result redlock_open(const char *url, const struct lease_options *options,
                                   struct lease **ret, struct hf_fault *fault)
{
    struct redlock_url u;
    enum hf_result result = redlock_url_parse(url, &u, fault);
    if (result != HF_DONE)
        return result;
    struct redlock_health *health = hf_alloc(sizeof *health);
    atomic_init(&health->refs, 1);
    struct redlock *r = handle_new(u.addresses, u.n, options, u.max_ttl_ms, health);
    fan_begin(r, 0);
    fan_connect(r, false);
    server_set open = fan_open(r);
    if (count_of(open) >= r->majority) {
        *ret = &r->lease;
        return HF_DONE;
    }
    result = fan_fault(r, HF_UNREACHABLE, (bit_of(r->n_servers) - 1) & ~open, fault);
    redlock_close(&r->lease);
    return result;
}

/* Reads only what never changes, since `l` may be in use. */
static enum hf_result redlock_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    const struct redlock *r = redlock_of(l);
    struct redis_address addresses[SERVERS_MAX];
    for (size_t i = 0; i < r->n_servers; i++)
        redis_address_copy(&r->servers[i].address, &addresses[i]);
    struct lease_options options = {.timeout_ms = r->timeout_ms, .clock = r->clock};
    atomic_fetch_add(&r->health->refs, 1);
    *ret = &handle_new(addresses, r->n_servers, &options, r->max_ttl_ms, r->health)->lease;
    return HF_DONE;
}

const struct lease_driver lease_redlock = {
    .info =
        {.size = sizeof(struct hf_driver_info),
         .name = "redlock",
         .url = "redlock[s]://[[user]:password@]host:port,host:port,host:port[,...]"
                "[?max_ttl=60s&db=N&cacert=FILE&cert=FILE&key=FILE]",
         .fence = HF_FENCE_DURABLE,
         .processes = true,
         .outlives = true,
         .shared = true,
         .ttl_min_ms = LEASE_TTL_MIN_MS,
         .ttl_max_ms = LEASE_TTL_MAX_MS,
         .name_len_max = LEASE_NAME_MAX,
         .ttl = "the clocks of the Redis servers, to the millisecond, and at most max_ttl of the "
                "URL; a grant is shorter by the time that asking took and by 1 % + 2 ms",
         .survives =
             "clients' ends and lost connections; the loss of any minority of the servers. A "
             "server that is restarted or emptied has no vote for max_ttl, so that it cannot help "
             "a second holder. Fences are stored on a majority before they are given out; if all "
             "servers lose their data they go on at the servers' clock in microseconds",
         .overlaps = HF_OVERLAP_CLOCK,
         .beware =
             "Redlock counts on clocks: a server whose clock jumps, or a client that is stopped "
             "between the grant and the write, gives a lock two holders, which only a check of "
             "the fence makes harmless. FLUSHALL on a majority of the servers ends all locks. "
             "Waiters have no order",
         .traits = HF_TRAIT_FORGETS_FENCE},
    .schemes = (const char *const[]){"redlock://", "redlocks://", NULL},
    .open = redlock_open,
    .close = redlock_close,
    .clone = redlock_clone,
    .acquire = redlock_acquire,
    .renew = redlock_renew,
    .release = redlock_release,
    .wait = redlock_wait,
    .inspect = redlock_inspect,
    .list = redlock_list,
    .break_ = redlock_break,
    .examine = redlock_examine,
};
