/* The machine and the software that the lab measured on, for the heading of its reports. */
#ifndef HF_LAB_MACHINE_H
#define HF_LAB_MACHINE_H

#include <stdint.h>

#include "base/buf.h"

struct machine {
    int cpus;
    char model[128]; /* of the processor, or its architecture where the kernel names no model */
    int64_t memory_bytes;
    char kernel[136];
};
void machine_read(struct machine *ret);
/* Writes the member `machine`. */
void machine_json(const struct machine *m, struct buf *out);

/* Versions as the servers report them; "" for a server that was not used. */
struct versions {
    char holdfast[32], postgresql[64], redis[32], sqlite[32];
};

#endif
