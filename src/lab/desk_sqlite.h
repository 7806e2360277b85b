/* The SQLite half of desk.h, called by desk.c. */
#ifndef HF_LAB_DESK_SQLITE_H
#define HF_LAB_DESK_SQLITE_H

#include <stdarg.h>

#include "lab/desk.h"

#define DESK_PARAMETERS_MAX 8

/* Reads the parameters up to the NULL and returns how many there are. */
int desk_parameters(va_list args, const char *ret[DESK_PARAMETERS_MAX]);

HF_MUST_USE bool desk_sqlite_open(struct desk *d, struct hf_err *err);
void desk_sqlite_close(struct desk *d);
bool desk_sqlite_do(struct desk *d, const char *sql);
long desk_sqlite_change(struct desk *d, const char *sql, va_list args);
bool desk_sqlite_all_available(struct desk *d, size_t n_seats, const char *sql, va_list args);

#endif
