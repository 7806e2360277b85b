/* How long the journal of the lock service takes to store one entry, without anything else: the
 * measure of the cell's latencies.
 *
 *   build/bench/journal URL BYTES SECONDS
 *
 * BYTES is the length of an entry.  One line of JSON goes to stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/vec.h"
#include "cell/journal.h"

#define BYTES_MAX 4096
#define SECONDS_MAX 60
#define WARM_BYTES ((size_t)64 * 1024) /* an entry of the warm-up */
#define WARM_N 256
#define WARM_US 1000000

static VEC(int64_t) samples;

_Noreturn static void give_up(const char *what, const struct hf_err *err)
{
    (void)fprintf(stderr, "journal: %s %s\n", what, err ? err->msg : "");
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

struct writer {
    struct journal *j;
    struct journal_mandate mandate;
    int64_t index; /* of the last entry */
    struct random random;
    char data[WARM_BYTES];
};

static void claim(struct writer *w)
{
    struct journal_page page = {0};
    struct hf_err err = {0};
    if (w->j->driver->read(w->j, 0, &page, &err) != JOURNAL_DONE)
        give_up("cannot read:", &err);
    w->index = page.head.last;
    w->mandate.epoch = page.head.epoch + 1;
    random_bytes(&w->random, w->mandate.claim, sizeof w->mandate.claim);
    if (w->j->driver->claim(w->j, &w->mandate, "http://127.0.0.1:1", &err) != JOURNAL_DONE)
        give_up("cannot claim:", &err);
    journal_page_close(&page);
}

/* Returns how long it took. */
static int64_t append_us(struct writer *w, size_t bytes)
{
    uint8_t id[JOURNAL_ID_SIZE];
    struct hf_err err = {0};
    random_bytes(&w->random, id, sizeof id);
    random_bytes(&w->random, w->data, bytes);
    int64_t begun_us = clock_monotonic_us(&clock_system);
    if (w->j->driver->append(w->j, &w->mandate, ++w->index, id, w->data, bytes, &err) !=
        JOURNAL_DONE)
        give_up("cannot append:", &err);
    return clock_monotonic_us(&clock_system) - begun_us;
}

/* First the log of the engine grows to its usual size and begins anew: as long as it grows, every
 * sync also writes the file's new size, and takes longer. */
static void measure(struct journal *j, size_t bytes, int64_t us)
{
    static struct writer w;
    w.j = j;
    random_init_system(&w.random);
    claim(&w);
    for (int i = 0; i < WARM_N; i++)
        (void)append_us(&w, WARM_BYTES);
    const int64_t begins_us = clock_monotonic_us(&clock_system) + WARM_US;
    for (int64_t now_us = 0; now_us < begins_us + us;) {
        int64_t taken_us = append_us(&w, bytes);
        now_us = clock_monotonic_us(&clock_system);
        if (now_us >= begins_us)
            *vec_push(&samples) = taken_us;
    }
}

int main(int argc, char **argv)
{
    const struct journal_driver *driver = argc == 4 ? journal_driver_for(argv[1]) : NULL;
    const struct journal_options options = {.clock = &clock_system};
    int bytes = argc == 4 ? atoi(argv[2]) : 0, seconds = argc == 4 ? atoi(argv[3]) : 0;
    struct journal *j = NULL;
    struct hf_err err = {0};
    if (!driver || bytes < 1 || bytes > BYTES_MAX || seconds < 1 || seconds > SECONDS_MAX)
        give_up("usage: journal URL BYTES SECONDS", NULL);
    if (driver->open(argv[1], &options, &j, &err) != HF_OK)
        give_up("cannot open:", &err);
    measure(j, (size_t)bytes, seconds * INT64_C(1000000));
    driver->close(j);
    qsort(samples.v, samples.n, sizeof *samples.v, by_size);
    printf("{\"requests\":%zu,\"p50_us\":%lld,\"p99_us\":%lld}\n", samples.n,
           (long long)samples.v[samples.n / 2], (long long)samples.v[samples.n * 99 / 100]);
    vec_close(&samples);
    return 0;
}
