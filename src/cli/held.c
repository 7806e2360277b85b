/* See held.h.  Main thread. */
#include "cli/held.h"

int64_t held_deadline_ms(const struct hf_lock_set *set)
{
    int64_t earliest = INT64_MAX;
    struct hf_lock *lock;
    for (size_t i = 0; (lock = hf_lock_set_at(set, i)); i++) {
        int64_t deadline = hf_lock_deadline_ms(lock);
        earliest = deadline < earliest ? deadline : earliest;
    }
    return earliest;
}

bool held_all(const struct hf_lock_set *set)
{
    struct hf_lock *lock;
    for (size_t i = 0; (lock = hf_lock_set_at(set, i)); i++)
        if (!hf_lock_held(lock))
            return false;
    return true;
}

const char *held_weakest(const struct hf_lock_set *set)
{
    struct hf_lock *lock, *weakest = hf_lock_set_at(set, 0);
    for (size_t i = 0; (lock = hf_lock_set_at(set, i)); i++) {
        if (!hf_lock_held(lock))
            return hf_lock_name(lock);
        if (hf_lock_deadline_ms(lock) < hf_lock_deadline_ms(weakest))
            weakest = lock;
    }
    return hf_lock_name(weakest);
}

size_t held_files(const struct hf_lock_set *set, struct pollfd *ret)
{
    size_t n = 0;
    struct hf_lock *lock;
    for (; n < HELD_MAX && (lock = hf_lock_set_at(set, n)); n++)
        ret[n] = (struct pollfd){.fd = hf_lock_fd(lock), .events = POLLIN};
    return n;
}

void held_put_names(struct buf *b, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_str(b, i ? ", " : "");
        buf_str(b, names[i]);
    }
    buf_char(b, '\0');
}
