/* Names of time zones: is "Europe/Berlin" one?  The server stores such names for pages and shops to
 * show times by, and computes with UTC alone.  Any thread. */
#ifndef HF_BASE_TIME_ZONE_H
#define HF_BASE_TIME_ZONE_H

#include <stdbool.h>

#define TIME_ZONE_DATABASE "/usr/share/zoneinfo"
#define TIME_ZONE_LEN_MAX 64

/* Does the zone database in that directory have a zone of that name, as IANA writes it?  Where
 * there is no database, as on a machine without Debian's tzdata, any name that is written like one
 * is good. */
bool time_zone_exists(const char *database, const char *name);

#endif
