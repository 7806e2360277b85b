/* Holdfast's own stage: events and sales over HTTP. */
#ifndef HF_LAB_ENGINE_H
#define HF_LAB_ENGINE_H

#include "lab/stage.h"

HF_MUST_USE bool engine_stage(const char *server, int seats, char ret_event[STAGE_EVENT_SIZE],
                              struct hf_err *err);
HF_MUST_USE bool engine_sales(const char *server, const char *event, struct stage_sales *ret,
                              struct hf_err *err);
/* What its requests have cost so far, all of them together, by its own metrics. */
struct engine_costs {
    double commits, sql_trips, gate_trips;
};
HF_MUST_USE bool engine_costs(const char *server, struct engine_costs *ret, struct hf_err *err);

#endif
