/* The report: the race and the anomalies as one HTML page that needs no other file. */
#ifndef HF_LAB_REPORT_H
#define HF_LAB_REPORT_H

#include "base/buf.h"

/* `race` and `anomalies` are the JSON of race_json and anomalies_json. */
void report_page(const char *race, const char *anomalies, struct buf *out);

#endif
