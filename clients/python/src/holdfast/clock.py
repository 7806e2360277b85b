"""The clock that deadlines are counted on: it cannot be set, and goes on while the machine sleeps."""

import time

if hasattr(time, "CLOCK_BOOTTIME"):
    def now() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
else:  # not Linux
    now = time.monotonic
