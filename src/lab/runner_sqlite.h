/* The SQLite half of runner.h, called by runner.c. */
#ifndef HF_LAB_RUNNER_SQLITE_H
#define HF_LAB_RUNNER_SQLITE_H

#include <stdarg.h>

#include "lab/runner.h"

#define RUNNER_PARAMETERS_MAX 8

/* Reads the parameters up to the NULL and returns how many there are. */
int runner_parameters(va_list args, const char *ret[RUNNER_PARAMETERS_MAX]);

HF_MUST_USE bool runner_sqlite_open(struct runner *r, struct hf_err *err);
void runner_sqlite_close(struct runner *r);
bool runner_sqlite_do(struct runner *r, const char *sql);
long runner_sqlite_change(struct runner *r, const char *sql, va_list args);
bool runner_sqlite_all_available(struct runner *r, size_t n_seats, const char *sql, va_list args);

#endif
