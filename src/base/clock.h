/* The seam for time: everything below main is handed a struct clock, so that tests own time.
 * Three clocks: monotonic for measuring work, boot-time for deadlines (it counts while the machine
 * sleeps), wall for what people read.  Thread-safe. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    int64_t (*monotonic_us)(const struct clock *clock);
    int64_t (*boot_us)(const struct clock *clock);
    int64_t (*wall_us)(const struct clock *clock);
};

extern const struct clock clock_system;

static inline int64_t clock_monotonic_us(const struct clock *c) { return c->monotonic_us(c); }
static inline int64_t clock_boot_us(const struct clock *c) { return c->boot_us(c); }
static inline int64_t clock_wall_us(const struct clock *c) { return c->wall_us(c); }

/* Names this run of the kernel, which the boot-time clock counts from.  False: no /proc. */
#define CLOCK_BOOT_SIZE 37
bool clock_boot_id(char out[CLOCK_BOOT_SIZE]);

/* A clock that stands still until told to move.  `step` moves the wall alone, as an operator or
 * NTP would; `advance` moves all three. */
struct clock_fake {
    struct clock clock; /* pass &fake.clock */
    _Atomic int64_t boot_us;
    _Atomic int64_t wall_us;
};

void clock_fake_init(struct clock_fake *fake, int64_t wall_us);
void clock_fake_advance(struct clock_fake *fake, int64_t us);
void clock_fake_step(struct clock_fake *fake, int64_t us);

/* "2026-11-15T01:16:44.123Z" from milliseconds since 1970; `out` gets 24 bytes and a NUL. */
#define CLOCK_TEXT_SIZE 25
void clock_format_ms(int64_t ms, char out[CLOCK_TEXT_SIZE]);

#endif
