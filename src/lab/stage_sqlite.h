/* The SQLite half of stage.h, called by stage.c. */
#ifndef HF_LAB_STAGE_SQLITE_H
#define HF_LAB_STAGE_SQLITE_H

#include "lab/stage.h"

HF_MUST_USE bool stage_sqlite_build(const char *path, struct hf_err *err);
HF_MUST_USE bool stage_sqlite_seats(const char *path, const char *event, int seats,
                                    struct hf_err *err);
HF_MUST_USE bool stage_sqlite_sales(const char *path, const char *event, struct stage_sales *ret,
                                    struct hf_err *err);

#endif
