/* `holdfast elect --observe`: prints who leads, now and at every change, until a signal ends it.
 * It asks the coordinator again and again, which works with every one of them.  Main thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "base/status.h"
#include "base/wait.h"
#include "cli/observe.h"
#include "cli/render.h"

#define PAUSE_US 250000

struct observer {
    const struct ask *ask;
    const char *name;
    struct hf_locks *locks;
    bool has_printed;
    int64_t fence; /* of the leader that was printed last; 0: there was none */
    char *value;   /* its value; NULL: none */
};

static void put_leader(struct buf *b, const struct observer *o, const struct hf_holder *leader,
                       const char *value)
{
    if (o->ask->json) {
        buf_char(b, '{');
        json_put_text_or_null(b, "name", o->name);
        json_put_text_or_null(b, "label", leader ? leader->label : NULL);
        json_put_text_or_null(b, "value", value);
        json_put_int_or_null(b, "fence", leader ? leader->fence : 0);
        buf_lit(b, "}\n");
        return;
    }
    if (!leader) {
        buf_lit(b, "no leader\n");
        return;
    }
    buf_lit(b, "leader ");
    render_text(b, *leader->label ? leader->label : "-",
                *leader->label ? strlen(leader->label) : 1);
    buf_printf(b, ", fence %" PRId64, leader->fence);
    if (value) {
        buf_lit(b, ", value ");
        render_text(b, value, strlen(value));
    }
    buf_char(b, '\n');
}

/* Prints the leader if it, or its value, is another than before.  Returns false if nobody reads. */
static bool report(struct observer *o, const struct hf_lock_state *state)
{
    const struct hf_holder *leader = state->n_holders ? state->holders[0] : NULL;
    const char *value = leader ? state->value : NULL;
    int64_t fence = leader ? leader->fence : 0;
    bool has_same_value = value ? o->value && strcmp(value, o->value) == 0 : !o->value;
    if (o->has_printed && fence == o->fence && has_same_value)
        return true;
    struct buf b = {0};
    put_leader(&b, o, leader, value);
    free(o->value);
    o->value = value ? hf_strndup(value, strlen(value)) : NULL;
    o->fence = fence;
    o->has_printed = true;
    return cli_print(&b);
}

/* Looks until nobody reads any more, or the coordinator refuses. */
static int watch(struct observer *o)
{
    struct hf_fault fault = {0};
    bool complained = false;
    for (;;) {
        struct hf_lock_state state = HF_LOCK_STATE_INIT;
        enum hf_result result = hf_inspect(o->locks, o->name, &state, &fault);
        if (result == HF_DONE) {
            if (complained)
                cli_outage(NULL, (void *)(uintptr_t) "elect");
            complained = false;
            bool is_read = report(o, &state);
            hf_lock_state_close(&state);
            if (!is_read)
                return EXIT_FAILURE;
        } else if (result != HF_UNREACHABLE && result != HF_UNKNOWN) {
            return cli_fail("elect", &fault);
        } else if (!complained) {
            cli_outage(&fault, (void *)(uintptr_t) "elect");
            complained = true;
        }
        wait_sleep_us(PAUSE_US);
    }
}

int observe(const struct ask *ask, const char *name)
{
    struct observer o = {.ask = ask, .name = name};
    struct hf_fault fault = {0};
    const char *url = cli_url("elect", ask->url_given);
    if (!url)
        return EXIT_BAD_USAGE;
    fault.result = hf_open(url, &ask->open, &o.locks, &fault);
    if (fault.result != HF_DONE)
        return cli_fail("elect", &fault);
    int code = watch(&o);
    hf_close(o.locks);
    free(o.value);
    return code;
}
