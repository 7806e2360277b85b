/* The bytes of an entry of the lock service's journal.  Whatever is accepted has exactly one form,
 * and the state takes it: after all commands the invariants hold and a snapshot of the state can be
 * read. */
#include "fuzz.h"

#include "cell/entry.h"
#include "cell/state.h"

static void state_survives(struct cell_state *s)
{
    struct buf first = {0}, second = {0};
    struct hf_err err = {0};
    cell_state_clear_effects(s);
    cell_state_check(s);
    cell_state_save(s, &first);
    struct cell_state *restored = cell_state_restore(first.data, first.len, &err);
    hf_check(restored);
    cell_state_save(restored, &second);
    hf_check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    cell_state_free(restored);
    buf_close(&first);
    buf_close(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct entry_reader r;
    struct entry_head head;
    struct cell_command c;
    struct cell_verdict v = {0};
    struct hf_err err = {0};
    struct buf again = {0};
    char *copy = fuzz_text(data, size);
    struct cell_state *s = cell_state_new();
    if (entry_open(&r, copy, size, &head, &err)) {
        entry_put_head(&again, &head);
        while (entry_next(&r, &c, &err)) {
            entry_put(&again, &c);
            cell_state_apply(s, &c, &v);
        }
        hf_check(again.len <= size && memcmp(again.data, copy, again.len) == 0);
        hf_check(err.code != HF_OK || again.len == size);
        state_survives(s);
        entry_close(&r);
    }
    hf_check(err.code == HF_OK || err.msg[0]);
    cell_state_free(s);
    cell_verdict_close(&v);
    buf_close(&again);
    free(copy);
    return 0;
}
