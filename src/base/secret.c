/* See secret.h.  On the main thread, at start, at a reload and at the end. */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

void *secret_alloc(size_t size)
{
    size_t bytes = whole_pages(size);
    void *memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes);
    hf_check(memory != NULL);
    memset(memory, 0, bytes);
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    (void)mlock(memory, bytes);
    return memory;
}

/* The pages go back to malloc, so they become like all others again. */
void secret_free(void *memory, size_t size)
{
    if (!memory)
        return;
    size_t bytes = whole_pages(size);
    explicit_bzero(memory, bytes);
    (void)munlock(memory, bytes);
    (void)madvise(memory, bytes, MADV_DODUMP);
    free(memory);
}

void secret_mask_url(char *text)
{
    char *host = strstr(text, "://");
    if (!host)
        return;
    host += 3;
    char *at = strrchr(host, '@');
    if (at)
        memset(host, 'x', (size_t)(at - host));
    char *question = strchr(at ? at : host, '?');
    if (question)
        memset(question + 1, 'x', strlen(question + 1));
}

char **secret_take_arguments(char **argv, size_t *ret_size)
{
    size_t n = 0, bytes = 0;
    for (; argv[n]; n++)
        bytes += strlen(argv[n]) + 1;
    *ret_size = (n + 1) * sizeof *argv + bytes;
    char **copy = secret_alloc(*ret_size);
    char *to = (char *)(copy + n + 1);
    for (size_t i = 0; i < n; i++) {
        copy[i] = to;
        to = stpcpy(to, argv[i]) + 1;
        secret_mask_url(argv[i]);
    }
    return copy;
}

/* A limit of 0 lets the kernel hand dumps to a program all the same, if core(5) says to; a limit of
 * 1 does not. */
void secret_forbid_dumps(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max > 0 ? 1 : 0;
    (void)setrlimit(RLIMIT_CORE, &limit);
}
