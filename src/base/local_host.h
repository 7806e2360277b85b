/* Which hosts of URLs are this machine.  A pure function. */
#ifndef HF_BASE_LOCAL_HOST_H
#define HF_BASE_LOCAL_HOST_H

#include <stdbool.h>

/* Does the host stand for this machine?  That is localhost, 127.0.0.0/8, ::1, a path of sockets, or
 * nothing at all, which is libpq's own socket.  Any other name may be anybody on the way. */
bool host_is_local(const char *host);

#endif
