/* `--metrics-file`: what one run did, in the form that node-exporter's textfile collector reads. */
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
    int64_t began_ms; /* wall */
    struct hf_stats stats;
};

/* Written beside `path` and renamed, so that a reader sees the old or the new, whole.  False:
 * errno.
 */
bool metrics_file_write(const char *path, const struct run_report *report);

#endif
