/* See holders.h.  Main thread.
 *
 * A command that `holdfast run a` has started and that runs `holdfast run a` itself would wait for
 * its own end; so would `holdfast run a/b`, where names are a hierarchy.  The wrappers pass down
 * what they hold, in HOLDFAST_LOCKS_HELD: one line per lock, "FENCE NAME".  Whether such a lock is
 * on the coordinator that is asked, and not lost since, only the coordinator knows: it is, if a
 * holder has that fence. */
#include "cli/holders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

struct wrapper_lock {
    int64_t fence;
    char name[HOLDERS_NAME_MAX + 1];
};

/* Reads the next line of HOLDFAST_LOCKS_HELD that is one; *at is NULL at first. */
static bool next_of_wrappers(const char **at, struct wrapper_lock *ret)
{
    const char *line = *at ? *at : getenv("HOLDFAST_LOCKS_HELD");
    while (line && *line) {
        size_t len = strcspn(line, "\n");
        char *end;
        long long fence = strtoll(line, &end, 10);
        const char *name = end + 1;
        size_t name_len = end > line && *end == ' ' ? len - (size_t)(name - line) : 0;
        line += len + (line[len] == '\n');
        if (name_len == 0 || name_len > HOLDERS_NAME_MAX)
            continue;
        ret->fence = fence;
        memcpy(ret->name, name, name_len);
        ret->name[name_len] = '\0';
        *at = line;
        return true;
    }
    return false;
}

/* Does a wrapper hold this name and, unless `fence` is 0, with this fence? */
static bool wrapper_holds(const char *name, int64_t fence)
{
    struct wrapper_lock lock;
    for (const char *at = NULL; next_of_wrappers(&at, &lock);)
        if (strcmp(lock.name, name) == 0 && (!fence || lock.fence == fence))
            return true;
    return false;
}

static bool is_below(const char *name, const char *above)
{
    size_t len = strlen(above);
    return strncmp(name, above, len) == 0 && name[len] == '/';
}

static bool has_writer(const struct hf_lock_state *state)
{
    for (size_t i = 0; i < state->n_waiters; i++)
        if (state->waiters[i]->mode == HF_EXCLUSIVE)
            return true;
    return false;
}

/* Does anybody wait for an exclusive lock of the name, or of one above it? */
static bool writer_waits_at(struct hf_locks *locks, const char *name)
{
    char path[HOLDERS_NAME_MAX + 1];
    snprintf(path, sizeof path, "%s", name);
    for (;;) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        if (hf_inspect(locks, path, &state, NULL) != HF_DONE)
            return false;
        bool found = has_writer(&state);
        hf_lock_state_close(&state);
        char *slash = strrchr(path, '/');
        if (found || !slash)
            return found;
        *slash = '\0';
    }
}

/* A shared request waits behind exclusive ones that came before it, and those wait for the
 * wrapper's shared lock. */
static bool would_never_end(const char *name, const struct hf_lock_state *state,
                            const struct hf_lock_options *want)
{
    unsigned shared = 0, exclusive = 0, slots = want->slots > 1 ? want->slots : 1;
    for (size_t i = 0; i < state->n_holders; i++)
        if (wrapper_holds(name, state->holders[i]->fence))
            ++*(state->holders[i]->mode == HF_SHARED ? &shared : &exclusive);
    if (want->mode == HF_SHARED)
        return exclusive > 0 || (shared > 0 && has_writer(state));
    return shared > 0 || exclusive >= slots;
}

static bool waits_for_same_name(struct hf_locks *locks, const char *name,
                                const struct hf_lock_options *want)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    if (!wrapper_holds(name, 0) || hf_inspect(locks, name, &state, NULL) != HF_DONE)
        return false;
    bool found = would_never_end(name, &state, want);
    hf_lock_state_close(&state);
    return found;
}

/* `outer` is above or below the name: they exclude each other unless both are shared. */
static bool waits_for_related(struct hf_locks *locks, const struct wrapper_lock *outer,
                              const char *name, const struct hf_lock_options *want)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    bool found = false, shared = false;
    if (hf_inspect(locks, outer->name, &state, NULL) != HF_DONE)
        return false;
    for (size_t i = 0; i < state.n_holders && !found; i++) {
        found = state.holders[i]->fence == outer->fence;
        shared = found && state.holders[i]->mode == HF_SHARED && want->mode == HF_SHARED;
    }
    if (found && shared)
        found = has_writer(&state) || writer_waits_at(locks, name);
    hf_lock_state_close(&state);
    return found;
}

bool holders_find_own(struct hf_locks *locks, const char *url, const char *const *names, size_t n,
                      const struct hf_lock_options *want, struct holders_own *ret)
{
    const struct hf_driver_info *driver = cli_driver(url);
    const bool is_hierarchy = driver && driver->traits & HF_TRAIT_HIERARCHY;
    for (size_t i = 0; i < n; i++) {
        struct wrapper_lock outer;
        ret->name = names[i];
        if (waits_for_same_name(locks, names[i], want)) {
            snprintf(ret->outer, sizeof ret->outer, "%s", names[i]);
            return true;
        }
        for (const char *at = NULL; is_hierarchy && next_of_wrappers(&at, &outer);) {
            if ((!is_below(names[i], outer.name) && !is_below(outer.name, names[i])) ||
                !waits_for_related(locks, &outer, names[i], want))
                continue;
            memcpy(ret->outer, outer.name, sizeof ret->outer);
            return true;
        }
    }
    return false;
}

void holders_say_own(const char *command, const struct holders_own *own)
{
    bool is_same = strcmp(own->name, own->outer) == 0;
    cli_say(command,
            "%s%s%s%s is held by the holdfast command that this one runs under, so it would wait "
            "for itself; take the lock once, outside",
            own->outer, is_same ? "" : ", which excludes ", is_same ? "" : own->name,
            is_same ? "" : ",");
}

static void say_held(const char *command, const char *name, const struct hf_lock_state *state)
{
    const struct hf_holder *first = state->holders[0];
    char label[133] = "a holder without a label", since[40] = "", more[40] = "", time[32];
    if (first->label[0])
        snprintf(label, sizeof label, "\"%s\"", first->label);
    if (first->held_ms >= 0)
        snprintf(since, sizeof since, " for %s", cli_rough_time(time, first->held_ms));
    if (state->n_holders > 1)
        snprintf(more, sizeof more, ", and by %zu more", state->n_holders - 1);
    cli_say(command, "%s is held by %s%s (fence %" PRId64 ")%s", name, label, since, first->fence,
            more);
}

void holders_say_taken(const char *command, struct hf_locks *locks, const char *const *names,
                       size_t n)
{
    bool said = false;
    for (size_t i = 0; i < n && !said; i++) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        if (hf_inspect(locks, names[i], &state, NULL) != HF_DONE)
            break;
        if ((said = state.n_holders > 0))
            say_held(command, names[i], &state);
        hf_lock_state_close(&state);
    }
    if (said)
        return;
    struct buf text = {0};
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s%s", i ? " or " : "", names[i]);
    buf_char(&text, '\0');
    cli_say(command, "%s is held by another holder", text.data);
    buf_close(&text);
}
