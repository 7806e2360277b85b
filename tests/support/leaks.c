/* When a C test searches for leaks at its end.  With gcc on ARM, every search takes four seconds of
 * processor time, however little memory there is: it visits each of the 2^28 places at which the
 * allocator could have some.  A process that has as much allocated at its end as before main has
 * leaked nothing, so only others search.
 *
 * What the C library keeps to the end would be the only difference in most tests.  So the buffer of
 * stdout is not allocated, the time zone is read before main, and tests/run tells the C library not
 * to keep the stacks of threads that have ended. */
#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

size_t __sanitizer_get_current_allocated_bytes(void); /* gcc has no header of it */

static size_t before_main_bytes;
static char stdout_buffer[BUFSIZ];

__attribute__((constructor)) static void begin(void)
{
    (void)setvbuf(stdout, stdout_buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF,
                  sizeof stdout_buffer);
    tzset();
    (void)dlerror(); /* frees what the sanitizer's own look-ups left there */
    before_main_bytes = __sanitizer_get_current_allocated_bytes();
}

/* The sanitizer asks this before it searches. */
int __lsan_is_turned_off(void)
{
    return __sanitizer_get_current_allocated_bytes() == before_main_bytes;
}
#endif
