/* The report: the race, the anomalies and the locks as one HTML page that needs no other file. */
#ifndef HF_LAB_REPORT_H
#define HF_LAB_REPORT_H

#include "base/buf.h"

/* Each of the three is what race_json, anomalies_json and locks_json write; `locks` may be NULL,
 * and the page then has no section about locks. */
void report_page(const char *race, const char *anomalies, const char *locks, struct buf *out);

#endif
