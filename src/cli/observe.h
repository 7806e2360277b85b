/* `holdfast elect --observe NAME`: see observe.c. */
#ifndef HF_CLI_OBSERVE_H
#define HF_CLI_OBSERVE_H

#include "cli/common.h"
#include "cli/options.h"

/* Prints the leader of `name` and every change, and returns the exit code. */
int observe(const struct ask *ask, const char *name);

#endif
