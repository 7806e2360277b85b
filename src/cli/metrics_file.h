/* `--metrics-file`: what one `holdfast run` did, in the format that node-exporter's textfile
 * collector reads. */
#ifndef HF_CLI_METRICS_FILE_H
#define HF_CLI_METRICS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

struct run_report {
    const char *name;
    bool acquired, lost;
    int64_t fence;
    int64_t wait_ms, held_ms;
    int exit_code;
    int64_t began_ms; /* wall clock, since 1970 */
    struct hf_stats stats;
};

/* Writes a temporary file beside `path` and renames it, so that a reader never sees half a file.
 * Returns false with errno if it cannot. */
bool metrics_file_write(const char *path, const struct run_report *report);

#endif
