/* See process.h.  CPU and memory are read when metrics are rendered.  Open files are counted in the
 * background, since kernels before 6.2 list them one by one, and a busy server has a hundred
 * thousand. */
#include "setup/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "holdfast.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* One per process, as /proc/self is. */
static struct {
    struct gauge *cpu, *resident, *virtual, *threads, *files, *files_max, *log_dropped;
} shown;

/* Fields of /proc/self/stat, counted from the one after the name in parentheses. */
enum { STAT_THREADS = 16, STAT_VSIZE = 19, STAT_RSS = 20, STAT_FIELDS };

static bool read_stat(long fields[STAT_FIELDS])
{
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[len] = '\0';
    char *at = strrchr(text, ')');
    if (!at || len < 4)
        return false;
    at += 4; /* past the parenthesis and the state, which is a letter */
    for (int i = 0; i < STAT_FIELDS; i++)
        fields[i] = strtol(at, &at, 10);
    return true;
}

static void collect(void *context)
{
    struct rusage used;
    long fields[STAT_FIELDS];
    (void)context;
    gauge_set(shown.log_dropped, (int64_t)log_dropped());
    if (getrusage(RUSAGE_SELF, &used) == 0)
        gauge_set(shown.cpu, (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
                                 used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    if (!read_stat(fields))
        return;
    gauge_set(shown.threads, fields[STAT_THREADS]);
    gauge_set(shown.virtual, fields[STAT_VSIZE]);
    gauge_set(shown.resident, fields[STAT_RSS] * sysconf(_SC_PAGESIZE));
}

static int64_t open_files(void)
{
    struct stat st;
    int64_t n = 0;
    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return st.st_size;
    DIR *files = opendir("/proc/self/fd");
    for (struct dirent *entry; files && (entry = readdir(files));)
        n += entry->d_name[0] != '.';
    if (files)
        (void)closedir(files);
    return n > 0 ? n - 1 : 0; /* without the one that read the list */
}

static void measure(void *context)
{
    struct rlimit limit;
    (void)context;
    gauge_set(shown.files, open_files());
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        gauge_set(shown.files_max, (int64_t)limit.rlim_cur);
}

void process_metrics(struct metrics *m)
{
    gauge_set(metrics_gauge(m, "holdfast_build_info",
                            "version=\"" HF_VERSION_TEXT "\",compiler=\"" COMPILER "\"",
                            "1; the labels say which program this is"),
              1);
    shown.cpu = metrics_measured(m, "process_cpu_seconds_total",
                                 "User and system CPU time spent in seconds", true, 1e-6);
    shown.resident = metrics_measured(m, "process_resident_memory_bytes",
                                      "Resident memory size in bytes", false, 1);
    shown.virtual = metrics_measured(m, "process_virtual_memory_bytes",
                                     "Virtual memory size in bytes", false, 1);
    shown.files =
        metrics_measured(m, "process_open_fds", "Number of open file descriptors", false, 1);
    shown.files_max =
        metrics_measured(m, "process_max_fds", "Maximum number of open file descriptors", false, 1);
    shown.threads = metrics_measured(m, "process_threads", "Number of threads", false, 1);
    shown.log_dropped =
        metrics_measured(m, "holdfast_log_lines_dropped_total",
                         "Lines of the log that were lost, since nobody read them", true, 1);
    gauge_set(metrics_measured(m, "process_start_time_seconds",
                               "Start time of the process since unix epoch in seconds", false,
                               1e-6),
              clock_wall_us(&clock_system));
    metrics_collector(m, METRICS_AT_RENDER, collect, NULL);
    metrics_collector(m, METRICS_AT_MEASURE, measure, NULL);
}
