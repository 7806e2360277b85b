/* The bytes of a snapshot of the lock service's state.  Whatever is accepted keeps the invariants,
 * has exactly one form, and can be used: every session can end, after which nothing but lock delays
 * is left. */
#include "fuzz.h"

#include "cell/state.h"

static void every_session_can_end(struct cell_state *s)
{
    for (const struct cell_session *session; (session = cell_session_next(s, 0));) {
        struct cell_command c = {.kind = CELL_EXPIRE, .session = {.key = session->id.key}};
        cell_state_apply(s, &c, NULL);
        cell_state_clear_effects(s);
        cell_state_check(s);
    }
    hf_check(cell_state_n_held(s) == 0 && cell_state_n_waiting(s) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_err err = {0};
    struct buf again = {0};
    char *copy = fuzz_text(data, size);
    struct cell_state *s = cell_state_restore(copy, size, &err);
    if (s) {
        cell_state_check(s);
        cell_state_save(s, &again);
        hf_check(again.len == size && memcmp(again.data, copy, size) == 0);
        every_session_can_end(s);
        cell_state_free(s);
        buf_close(&again);
    } else {
        hf_check(err.code == HF_INVALID_REQUEST && err.msg[0]);
    }
    free(copy);
    return 0;
}
