/* The program that faults.c stops and kills: a master that appends as fast as it can.
 *
 *   appender URL EPOCH BYTES
 *
 * It claims the epoch, appends entries of this many bytes, and prints the index of each that was
 * acknowledged.  Exits with 3 when it is deposed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/wait.h"
#include "cell/journal.h"

#define TIMEOUT_MS 20000
#define DEPOSED_STATUS 3

static _Noreturn void die(const char *what, const struct hf_err *err)
{
    (void)fprintf(stderr, "appender: %s: %s\n", what, err->msg);
    exit(1);
}

/* Repeats the call until its outcome is known, as a node does. */
static enum journal_result resolve(struct journal *j, struct journal_call *call)
{
    for (;;) {
        journal_run(j, call);
        if (call->result != JOURNAL_UNKNOWN && call->result != JOURNAL_UNREACHABLE)
            return call->result;
        wait_sleep_us(10000);
    }
}

static void append_forever(struct journal *j, struct journal_call *call, struct random *random)
{
    for (;; call->index++) {
        random_bytes(random, call->id, sizeof call->id);
        enum journal_result result = resolve(j, call);
        if (result == JOURNAL_DEPOSED)
            exit(DEPOSED_STATUS);
        if (result != JOURNAL_DONE && result != JOURNAL_FOUND)
            die("append", &call->err);
        (void)printf("%" PRId64 "\n", call->index);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct journal *j = NULL;
    struct hf_err err = {0};
    struct random random;
    if (argc != 4)
        return 64;
    const struct journal_options options = {
        .clock = &clock_system, .timeout_ms = TIMEOUT_MS, .may_lose = true};
    const struct journal_driver *driver = journal_driver_for(argv[1]);
    if (!driver || driver->open(argv[1], &options, &j, &err) != HF_OK)
        die("open", &err);
    static struct journal_call call;
    random_init_system(&random);
    call.mandate.epoch = strtoll(argv[2], NULL, 10);
    random_bytes(&random, call.mandate.claim, sizeof call.mandate.claim);
    call.url = "http://appender";
    call.op = JOURNAL_CLAIM;
    if (resolve(j, &call) == JOURNAL_DEPOSED)
        return DEPOSED_STATUS;
    call.op = JOURNAL_READ;
    call.index = INT64_C(1) << 40;
    (void)resolve(j, &call);
    call.op = JOURNAL_APPEND;
    call.index = call.page.head.last + 1;
    call.len = strtoul(argv[3], NULL, 10);
    char *data = hf_alloc(call.len);
    random_bytes(&random, data, call.len);
    call.data = data;
    append_forever(j, &call, &random);
}
