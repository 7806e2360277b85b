/* What the command of `holdfast run` and `holdfast elect` learns about its locks: see held.h.  Main
 * thread.
 *
 * A variable that has something for each lock has one line for each, in the order of names; names
 * contain no newline.  HOLDFAST_FENCE is there for a single lock only: a script that is written for
 * one lock must not check the fence of the wrong one.  HOLDFAST_LOCKS_HELD also keeps the lines of
 * the wrappers around this one, for holders.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/held.h"

#define OUTER_LEN_MAX 65536 /* of HOLDFAST_LOCKS_HELD, as it was found */

static const char *const ours[] = {
    "HOLDFAST_DEADLINE_MS", "HOLDFAST_FENCE",      "HOLDFAST_FENCES", "HOLDFAST_FENCE_RESOURCE",
    "HOLDFAST_LOCK_NAME",   "HOLDFAST_LOCKS_HELD", "HOLDFAST_SLOT",
};
#define N_OURS (sizeof ours / sizeof *ours)

static bool is_ours(const char *entry)
{
    size_t len = strcspn(entry, "=");
    for (size_t i = 0; i < N_OURS; i++)
        if (strlen(ours[i]) == len && memcmp(ours[i], entry, len) == 0)
            return true;
    return false;
}

static void put_name(struct buf *b, const struct hf_lock *lock, unsigned slots)
{
    (void)slots;
    buf_str(b, hf_lock_name(lock));
}

static void put_fence(struct buf *b, const struct hf_lock *lock, unsigned slots)
{
    (void)slots;
    buf_int(b, hf_lock_fence(lock));
}

static void put_slot(struct buf *b, const struct hf_lock *lock, unsigned slots)
{
    (void)slots;
    buf_int(b, hf_lock_slot(lock));
}

static void put_resource(struct buf *b, const struct hf_lock *lock, unsigned slots)
{
    buf_str(b, hf_lock_name(lock));
    if (slots > 1)
        buf_printf(b, "#%u", hf_lock_slot(lock));
}

static void put_held(struct buf *b, const struct hf_lock *lock, unsigned slots)
{
    (void)slots;
    buf_printf(b, "%" PRId64 " %s", hf_lock_fence(lock), hf_lock_name(lock));
}

/* Appends one line per lock; no newline follows the last. */
static void put_lines(struct buf *b, const struct hf_lock_set *set, unsigned slots,
                      void (*put)(struct buf *b, const struct hf_lock *lock, unsigned slots))
{
    struct hf_lock *lock;
    for (size_t i = 0; (lock = hf_lock_set_at(set, i)); i++) {
        buf_str(b, i ? "\n" : "");
        put(b, lock, slots);
    }
    buf_char(b, '\0');
}

/* Appends our variables, each of which ends in a NUL.  Returns how many there are. */
static size_t put_variables(struct buf *b, const struct hf_lock_set *set, unsigned slots)
{
    size_t n = 6;
    buf_lit(b, "HOLDFAST_LOCK_NAME=");
    put_lines(b, set, slots, put_name);
    buf_lit(b, "HOLDFAST_FENCES=");
    put_lines(b, set, slots, put_fence);
    buf_lit(b, "HOLDFAST_FENCE_RESOURCE=");
    put_lines(b, set, slots, put_resource);
    buf_lit(b, "HOLDFAST_SLOT=");
    put_lines(b, set, slots, put_slot);
    buf_lit(b, "HOLDFAST_LOCKS_HELD=");
    const char *outer = getenv("HOLDFAST_LOCKS_HELD");
    if (outer && *outer && strlen(outer) <= OUTER_LEN_MAX) {
        buf_str(b, outer);
        buf_char(b, '\n');
    }
    put_lines(b, set, slots, put_held);
    buf_printf(b, "HOLDFAST_DEADLINE_MS=%" PRId64, held_deadline_ms(set));
    buf_char(b, '\0');
    if (hf_lock_set_at(set, 1))
        return n;
    buf_lit(b, "HOLDFAST_FENCE=");
    put_lines(b, set, slots, put_fence);
    return n + 1;
}

/* setenv is not safe here, because the library's threads may be reading the environment. */
char **held_environment(const struct hf_lock_set *set, unsigned slots)
{
    struct buf text = {0};
    size_t n_ours = put_variables(&text, set, slots), n = 0, used = 0;
    while (environ[n])
        n++;
    char **environment = hf_alloc((n + n_ours + 1) * sizeof(char *) + text.len);
    for (size_t i = 0; i < n; i++)
        if (!is_ours(environ[i]))
            environment[used++] = environ[i];
    char *entry = (char *)(environment + n + n_ours + 1);
    memcpy(entry, text.data, text.len);
    for (size_t i = 0; i < n_ours; i++, entry += strlen(entry) + 1)
        environment[used++] = entry;
    environment[used] = NULL;
    buf_close(&text);
    return environment;
}
