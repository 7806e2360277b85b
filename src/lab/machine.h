/* What the lab measured on. */
#ifndef HF_LAB_MACHINE_H
#define HF_LAB_MACHINE_H

#include <stdint.h>

struct machine {
    int cpus;
    char model[128];
    int64_t memory_bytes;
    char kernel[136];
};
void machine_read(struct machine *ret);

struct versions {
    char holdfast[32], postgresql[64], redis[32], sqlite[32]; /* "": not used */
};

#endif
