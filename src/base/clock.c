/* The system's clocks, the clock that tests control, and times as people read them.  Beside wait.c
 * and random.c the only file below main that asks the system for something unrepeatable.  Any
 * thread: the fake clock's fields are atomics, the rest has no state. */
#include "base/clock.h"

#include <fcntl.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

static int64_t read_us(clockid_t id)
{
    struct timespec t;
    hf_check(clock_gettime(id, &t) == 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t system_monotonic_us(const struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_MONOTONIC);
}

static int64_t system_boot_us(const struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_BOOTTIME);
}

static int64_t system_wall_us(const struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_REALTIME);
}

static int64_t system_thread_us(const struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_THREAD_CPUTIME_ID);
}

const struct clock clock_system = {
    .monotonic_us = system_monotonic_us,
    .boot_us = system_boot_us,
    .wall_us = system_wall_us,
    .thread_us = system_thread_us,
};

bool clock_is_real(const struct clock *clock) { return clock == &clock_system; }

bool clock_boot_id(char out[CLOCK_BOOT_SIZE])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, CLOCK_BOOT_SIZE - 1);
    close(fd);
    out[CLOCK_BOOT_SIZE - 1] = '\0';
    return n == CLOCK_BOOT_SIZE - 1;
}

static const struct clock_fake *fake_of(const struct clock *clock)
{
    const char *inside = (const char *)clock;
    return (const void *)(inside - offsetof(struct clock_fake, clock));
}

static int64_t fake_boot_us(const struct clock *clock)
{
    return atomic_load(&fake_of(clock)->boot_us);
}

static int64_t fake_wall_us(const struct clock *clock)
{
    return atomic_load(&fake_of(clock)->wall_us);
}

/* The boot-time clock starts at one second, since no real one is ever read at zero. */
void clock_fake_init(struct clock_fake *fake, int64_t wall_us)
{
    fake->clock = (struct clock){
        .monotonic_us = fake_boot_us,
        .boot_us = fake_boot_us,
        .wall_us = fake_wall_us,
        .thread_us = fake_boot_us,
    };
    atomic_init(&fake->boot_us, 1000000);
    atomic_init(&fake->wall_us, wall_us);
}

void clock_fake_advance(struct clock_fake *fake, int64_t us)
{
    atomic_fetch_add(&fake->boot_us, us);
    atomic_fetch_add(&fake->wall_us, us);
}

void clock_fake_step(struct clock_fake *fake, int64_t us) { atomic_fetch_add(&fake->wall_us, us); }

struct date {
    uint32_t year, month, day;
};

/* The calendar counted from 1 March of year 0, so that a leap day is the last day of its year: a
 * century is 36524.25 days, a year 365.25, and five months from March or August are 153 days.
 * Quarters of days keep the divisions whole. */
static struct date date_of(uint32_t days_since_1970)
{
    const uint32_t march_0_to_1970 = 719468;
    uint32_t quarters = 4 * (days_since_1970 + march_0_to_1970) + 3;
    uint32_t century = quarters / 146097;
    quarters = quarters % 146097 | 3;
    uint32_t year = quarters / 1461;
    uint32_t day = quarters % 1461 / 4; /* of the year that began in March */
    uint32_t month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    return (struct date){
        .year = 100 * century + year + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day + 1,
    };
}

/* Writes n decimal digits and the character that follows them; returns the end. */
static char *put_digits(char *out, int n, uint32_t value, char after)
{
    for (int i = n; i-- > 0; value /= 10)
        out[i] = (char)('0' + value % 10);
    out[n] = after;
    return out + n + 1;
}

/* Times outside 1970..9999 do not fit the format and show as its first or last moment. */
void clock_format_ms(int64_t ms, char out[CLOCK_TEXT_SIZE])
{
    const int64_t last = 253402300799999;
    const int64_t day_ms = 86400000;
    ms = ms < 0 ? 0 : ms > last ? last : ms;
    struct date date = date_of((uint32_t)(ms / day_ms));
    uint32_t rest = (uint32_t)(ms % day_ms);

    out = put_digits(out, 4, date.year, '-');
    out = put_digits(out, 2, date.month, '-');
    out = put_digits(out, 2, date.day, 'T');
    out = put_digits(out, 2, rest / 3600000, ':');
    out = put_digits(out, 2, rest / 60000 % 60, ':');
    out = put_digits(out, 2, rest / 1000 % 60, '.');
    out = put_digits(out, 3, rest % 1000, 'Z');
    *out = '\0';
}

size_t clock_format_local(int64_t ms, int64_t offset_min, char out[CLOCK_LOCAL_SIZE])
{
    clock_format_ms(ms + offset_min * 60000, out);
    char *end = out + CLOCK_TEXT_SIZE - 1;
    if (!offset_min)
        return (size_t)(end - out);
    uint32_t minutes = (uint32_t)(offset_min < 0 ? -offset_min : offset_min);
    end[-1] = offset_min < 0 ? '-' : '+';
    end = put_digits(end, 2, minutes / 60, ':');
    end = put_digits(end, 2, minutes % 60, '\0');
    return (size_t)(end - 1 - out);
}
