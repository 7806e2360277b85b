/* See machine.h. */
#include "lab/machine.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json_put.h"

/* Leaves `ret` as it is if the kernel names no model. */
static void read_model(char ret[128])
{
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "re");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "model name : %127[^\n]", ret) == 1)
            break;
    if (in)
        (void)fclose(in);
}

void machine_read(struct machine *ret)
{
    struct utsname name = {0};
    (void)uname(&name);
    ret->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    ret->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    (void)snprintf(ret->kernel, sizeof ret->kernel, "%s %s", name.sysname, name.release);
    (void)snprintf(ret->model, sizeof ret->model, "%s", name.machine);
    read_model(ret->model);
}

void machine_json(const struct machine *m, struct buf *out)
{
    json_open(out, "machine", '{');
    json_put_int(out, "cpus", m->cpus);
    json_put_text_or_null(out, "model", m->model);
    json_put_int(out, "memory_bytes", m->memory_bytes);
    json_put_text_or_null(out, "kernel", m->kernel);
    buf_char(out, '}');
}
