/* Pieces of Prometheus' text format, for the metrics of `holdfast run` and `holdfast elect`.  Any
 * thread. */
#ifndef HF_CLI_PROMETHEUS_H
#define HF_CLI_PROMETHEUS_H

#include "base/buf.h"

/* Appends the lines HELP and TYPE of the metric `prefix` `name`. */
void prometheus_put_head(struct buf *b, const char *prefix, const char *name, const char *type,
                         const char *help);
/* Appends the beginning of a sample, up to its value: `prefix` `name`{name="..."} and a space. */
void prometheus_put_name(struct buf *b, const char *prefix, const char *name, const char *lock);
/* Appends microseconds as seconds. */
void prometheus_put_seconds(struct buf *b, int64_t us);

#endif
