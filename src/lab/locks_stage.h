/* What the parts of `holdfast lab locks` share: one driver under measurement. */
#ifndef HF_LAB_LOCKS_STAGE_H
#define HF_LAB_LOCKS_STAGE_H

#include "lab/lock_crowd.h"
#include "lab/locks.h"

struct locks_stage {
    const struct locks_settings *settings;
    const struct servers *home;
    struct lock_crowd crowd;
    struct coordinator coordinator;
    struct locks_row *row;
};

/* Starts the coordinator and waits until a lock can be taken on it: servers that have just started
 * take no part in redlock at first. */
HF_MUST_USE bool locks_start_coordinator(struct locks_stage *s, enum coordinator_kind kind,
                                         bool has_steps, struct hf_err *err);
/* Sleeps, at most until the run is stopped.  Returns false if it was. */
bool locks_sleep_ms(const struct locks_stage *s, int64_t ms);
bool locks_is_stopped(const struct locks_stage *s);
void locks_say(const struct locks_stage *s, const char *what);
/* Formats the reason why something was not measured. */
__attribute__((format(printf, 2, 3))) void locks_why(char ret[LOCKS_WHY_SIZE], const char *fmt,
                                                     ...);

/* locks_speed.c: fills in row->speed, row->crowds and row->traffic. */
void locks_measure_speed(struct locks_stage *s);
/* locks_faults.c: fills in row->faults.  May replace s->coordinator. */
void locks_measure_faults(struct locks_stage *s);

#endif
