"""The clock that deadlines are counted on: it cannot be set, and goes on while the machine sleeps."""

import time

if hasattr(time, "clock_gettime"):  # CLOCK_MONOTONIC stands still with the machine on Linux alone
    _CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now() -> float:
        return time.clock_gettime(_CLOCK)
else:
    now = time.monotonic
