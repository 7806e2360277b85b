/* `--metrics-file`: what one `holdfast run` did, in the format that node-exporter's textfile
 * collector reads. */
#ifndef HF_CLI_METRICS_FILE_H
#define HF_CLI_METRICS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/held.h"

struct run_report {
    const char *const *names;
    size_t n_names;
    bool acquired, lost;
    int64_t fences[HELD_MAX]; /* in the order of `names`; 0 without a grant */
    int64_t wait_ms, held_ms;
    int exit_code;
    int64_t began_ms; /* wall clock, since 1970 */
    struct hf_stats stats;
};

/* Writes a temporary file beside `path` and renames it, so that a reader never sees half a file.
 * Each metric has one sample per lock.  Returns false with errno if it cannot. */
bool metrics_file_write(const char *path, const struct run_report *report);

#endif
