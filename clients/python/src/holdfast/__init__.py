"""A client of Holdfast: holds and bookings of seats, streams of changes, and locks."""

from . import webhooks
from .client import Client
from .errors import (Conflict, Gone, HoldfastError, LockLost, NotFound, OutcomeUnknown, StaleFence,
                     Unavailable)
from .fences import check_fence
from .groups import OPERATIONS
from .locks import Lock
from .resource import Resource
from .streams import SeatMap, Stream

__all__ = [
    "Client", "Conflict", "Gone", "HoldfastError", "Lock", "LockLost", "NotFound", "OPERATIONS",
    "OutcomeUnknown", "Resource", "SeatMap", "StaleFence", "Stream", "Unavailable", "check_fence",
    "webhooks",
]
