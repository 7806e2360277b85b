/* When a C test, or a program that a suite starts, searches for leaks at its end.  With gcc on ARM,
 * every search takes four seconds of processor time, however little memory there is: it visits each
 * of the 2^28 places at which the allocator could have some.  A process that has as much allocated
 * at its end as before main has leaked nothing, so only others search.
 *
 * What the C library keeps to the end would be the only difference in most tests.  So the buffers
 * of stdin and stdout are not allocated, the time zone, the name services and libpq's messages are
 * asked for before main, what setenv keeps is expected, and tests/run tells the C library not to
 * keep the stacks of threads that have ended. */
#include "support/leaks.h"

#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

size_t __sanitizer_get_current_allocated_bytes(void); /* gcc has no header of it */

static size_t expected_bytes;
static char stdout_buffer[BUFSIZ], stdin_buffer[BUFSIZ];

/* Of libpq, where that is linked. */
void *PQconnectStart(const char *conninfo) __attribute__((weak));
void PQfinish(void *conn) __attribute__((weak));

__attribute__((constructor)) static void begin(void)
{
    const struct addrinfo any = {.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    (void)setvbuf(stdout, stdout_buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF,
                  sizeof stdout_buffer);
    (void)setvbuf(stdin, stdin_buffer, _IOFBF, sizeof stdin_buffer);
    tzset();
    (void)getpwnam("root");
    (void)getpwuid(0);
    if (getaddrinfo("localhost", NULL, &any, &found) == 0)
        freeaddrinfo(found);
    if (PQconnectStart) /* its first message, of a port that is none, looks for a translation */
        PQfinish(PQconnectStart("host=127.0.0.1 port=none"));
    (void)dlerror(); /* frees what the sanitizer's own look-ups left there */
    expected_bytes = leaks_now();
}

size_t leaks_now(void) { return __sanitizer_get_current_allocated_bytes(); }

void leaks_expect_since(size_t before) { expected_bytes += leaks_now() - before; }

/* In place of the C library's. */
int setenv(const char *name, const char *value, int overwrite)
{
    int (*of_library)(const char *, const char *, int);
    *(void **)&of_library = dlsym(RTLD_NEXT, "setenv");
    size_t before = leaks_now();
    int result = of_library(name, value, overwrite);
    leaks_expect_since(before);
    return result;
}

static void *do_nothing(void *ctx) { return ctx; }

/* The C library frees what belonged to a detached thread when another thread has ended. */
static void end_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

/* The sanitizer asks this before it searches. */
int __lsan_is_turned_off(void)
{
    if (leaks_now() != expected_bytes)
        end_a_thread();
    return leaks_now() == expected_bytes;
}
#else
size_t leaks_now(void) { return 0; }
void leaks_expect_since(size_t before) { (void)before; }
#endif
