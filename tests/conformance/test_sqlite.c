/* The suite over a file in a directory of its own.  There is no server to restart; instead handles
 * are reopened, as the next process would do. */
#include "conformance.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct scratch dir;

static void start(struct backend *b)
{
    scratch_make(&dir);
    snprintf(b->url, sizeof b->url, "sqlite:%s/locks.db", dir.path);
    char path[200];
    snprintf(path, sizeof path, "%s/text", dir.path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 300; i++)
        assert_int_equal(write(fd, "not a database\n", 15), 15);
    close(fd);
    const unsigned refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no path", "sqlite:", 1U << HF_BAD_REQUEST};
    b->bad_urls[1] = (struct bad_url){.what = "below a file", .results = refused};
    snprintf(b->bad_urls[1].url, sizeof b->bad_urls[1].url, "sqlite:%s/locks.db", path);
    b->bad_urls[4] = (struct bad_url){.what = "no such directory", .results = refused};
    snprintf(b->bad_urls[4].url, sizeof b->bad_urls[4].url, "sqlite:%s/none/locks.db", dir.path);
    b->bad_urls[2] = (struct bad_url){.what = "a directory", .results = refused};
    snprintf(b->bad_urls[2].url, sizeof b->bad_urls[2].url, "sqlite:%s", dir.path);
    b->bad_urls[3] = (struct bad_url){.what = "not a database", .results = 1U << HF_FAILED};
    snprintf(b->bad_urls[3].url, sizeof b->bad_urls[3].url, "sqlite:%s", path);
    b->bad_urls[5] = (struct bad_url){"a place for no files", "sqlite:/proc/locks.db", refused};
}

static void stop(struct backend *b)
{
    (void)b;
    scratch_remove(&dir);
}

int main(void)
{
    struct backend b = {
        .name = "sqlite", .leases_survive_restart = true, .start = start, .stop = stop};
    return conformance_run(&b);
}
