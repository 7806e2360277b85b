/* Holdfast's own stage: its events, its sales and what its requests cost, asked over HTTP. */
#ifndef HF_LAB_HOLDFASTD_H
#define HF_LAB_HOLDFASTD_H

#include "lab/stage.h"

/* As stage_event and stage_sales (stage.h), on the server at this URL. */
HF_MUST_USE bool holdfastd_stage(const char *server, int seats, char ret_event[STAGE_EVENT_SIZE],
                                 struct hf_err *err);
HF_MUST_USE bool holdfastd_sales(const char *server, const char *event, struct stage_sales *ret,
                                 struct hf_err *err);

/* What all requests so far have cost together, read from the server's metrics. */
struct holdfastd_costs {
    double commits;
    double sql_trips;
    double gate_trips;
};
HF_MUST_USE bool holdfastd_costs(const char *server, struct holdfastd_costs *ret,
                                 struct hf_err *err);

#endif
