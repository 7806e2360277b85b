/* Holdfast's own stage: events and sales over HTTP. */
#ifndef HF_LAB_ENGINE_H
#define HF_LAB_ENGINE_H

#include "lab/stage.h"

HF_MUST_USE bool engine_stage(const char *server, int seats, char ret_event[STAGE_EVENT_SIZE],
                              struct hf_err *err);
HF_MUST_USE bool engine_sales(const char *server, const char *event, struct stage_sales *ret,
                              struct hf_err *err);
/* COMMITs that the server has made so far. */
HF_MUST_USE bool engine_commits(const char *server, double *ret, struct hf_err *err);

#endif
