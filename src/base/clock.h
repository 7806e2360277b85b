/* Time: everything below main is handed a struct clock, so that tests control time.  It is four
 * clocks in one: monotonic for measuring waits and rates, boot-time for deadlines (it goes on while
 * the machine sleeps), wall for what people read, and the processor's time of the calling thread
 * for measuring work, which does not count what others take of the machine.  Thread-safe.  Waiting
 * is in wait.h. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*monotonic_us)(const struct clock *clock);
    int64_t (*boot_us)(const struct clock *clock);
    int64_t (*wall_us)(const struct clock *clock);
    int64_t (*thread_us)(const struct clock *clock);
};

extern const struct clock clock_system;

static inline int64_t clock_monotonic_us(const struct clock *c) { return c->monotonic_us(c); }
static inline int64_t clock_boot_us(const struct clock *c) { return c->boot_us(c); }
static inline int64_t clock_wall_us(const struct clock *c) { return c->wall_us(c); }
static inline int64_t clock_thread_us(const struct clock *c) { return c->thread_us(c); }

/* Does this clock run by itself, as the system's does?  If not, a wait cannot be counted on it. */
bool clock_is_real(const struct clock *clock);

/* Writes the name of this run of the kernel, which the boot-time clock counts from.  Returns false
 * if there is no /proc. */
#define CLOCK_BOOT_SIZE 37
bool clock_boot_id(char out[CLOCK_BOOT_SIZE]);

/* A clock that stands still until it is told to move.  `advance` moves all four clocks; `step`
 * moves only the wall clock, as an operator or NTP would. */
struct clock_fake {
    struct clock clock; /* pass &fake.clock */
    _Atomic int64_t boot_us;
    _Atomic int64_t wall_us;
};

void clock_fake_init(struct clock_fake *fake, int64_t wall_us);
void clock_fake_advance(struct clock_fake *fake, int64_t us);
void clock_fake_step(struct clock_fake *fake, int64_t us);

/* Writes milliseconds since 1970 as "2026-11-15T01:16:44.123Z": 24 bytes and a NUL. */
#define CLOCK_TEXT_SIZE 25
void clock_format_ms(int64_t ms, char out[CLOCK_TEXT_SIZE]);
/* Writes the same moment with its offset from UTC, as "2026-11-15T03:16:44.123+02:00"; 0 is Z.
 * Returns the length. */
#define CLOCK_LOCAL_SIZE (CLOCK_TEXT_SIZE + 5)
size_t clock_format_local(int64_t ms, int64_t offset_min, char out[CLOCK_LOCAL_SIZE]);

#endif
