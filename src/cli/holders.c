/* See holders.h.  Main thread.
 *
 * A command that `holdfast run a` has started and that runs `holdfast run a` itself would wait for
 * its own end.  The wrappers pass down what they hold, in HOLDFAST_LOCKS_HELD: one line per lock,
 * "FENCE NAME".  Whether the lock that is asked for is that one, on the same coordinator and not
 * lost since, only the coordinator knows: it is, if a holder has that fence. */
#include "cli/holders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"

/* Returns whether a line of HOLDFAST_LOCKS_HELD has this name and, unless `fence` is 0, this fence.
 */
static bool wrapper_holds(const char *name, int64_t fence)
{
    const char *line = getenv("HOLDFAST_LOCKS_HELD");
    size_t name_len = strlen(name);
    while (line && *line) {
        size_t len = strcspn(line, "\n");
        char *end;
        long long number = strtoll(line, &end, 10);
        if (end > line && *end == ' ' && (size_t)(end + 1 - line) + name_len == len &&
            memcmp(end + 1, name, name_len) == 0 && (!fence || number == fence))
            return true;
        line += len + (line[len] == '\n');
    }
    return false;
}

/* A shared request waits behind exclusive ones that came before it, and those wait for the
 * wrapper's shared lock. */
static bool would_never_end(const char *name, const struct hf_lock_state *state,
                            const struct hf_lock_options *want)
{
    unsigned shared = 0, exclusive = 0, slots = want->slots > 1 ? want->slots : 1;
    bool writer_waits = false;
    for (size_t i = 0; i < state->n_holders; i++)
        if (wrapper_holds(name, state->holders[i]->fence))
            ++*(state->holders[i]->mode == HF_SHARED ? &shared : &exclusive);
    for (size_t i = 0; i < state->n_waiters; i++)
        writer_waits |= state->waiters[i]->mode == HF_EXCLUSIVE;
    if (want->mode == HF_SHARED)
        return exclusive > 0 || (shared > 0 && writer_waits);
    return shared > 0 || exclusive >= slots;
}

const char *holders_find_own(struct hf_locks *locks, const char *const *names, size_t n,
                             const struct hf_lock_options *want)
{
    for (size_t i = 0; i < n; i++) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        if (!wrapper_holds(names[i], 0) || hf_inspect(locks, names[i], &state, NULL) != HF_DONE)
            continue;
        bool found = would_never_end(names[i], &state, want);
        hf_lock_state_close(&state);
        if (found)
            return names[i];
    }
    return NULL;
}

void holders_say_own(const char *command, const char *name)
{
    cli_say(command,
            "%s is held by the holdfast command that this one runs under, so it would wait for "
            "itself; take the lock once, outside",
            name);
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
