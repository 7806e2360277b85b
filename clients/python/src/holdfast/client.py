"""The client: groups of calls, and locks."""

import ssl
from contextlib import AbstractContextManager
from typing import Optional, Sequence, Union

from . import groups
from .calls import Caller
from .locks import Lock
from .sessions import Sessions


class Client(AbstractContextManager["Client"]):
    """A client of one Holdfast server, or of several that share a ledger or are a cell.

    url          "http://HOST:PORT", or a list of them, which are tried in turn
    key          an access key
    timeout      for how long a call may take with all its repeats, in seconds
    ssl_context  whom to trust with https
    label        how the lock service names this client to people

    Any thread may use it.  In the child of a fork it goes on working, with connections and sessions
    of its own; locks stay with the parent.
    """

    def __init__(self, url: Union[str, Sequence[str]], key: Optional[str] = None,
                 timeout: float = 30, *, ssl_context: Optional[ssl.SSLContext] = None,
                 label: Optional[str] = None) -> None:
        self._caller = Caller(url, key, timeout, ssl_context)
        self._sessions = Sessions(self._caller, label)
        self.events = groups.Events(self._caller)
        self.holds = groups.Holds(self._caller)
        self.waitlist = groups.Waitlist(self._caller)
        self.bookings = groups.Bookings(self._caller)
        self.refunds = groups.Refunds(self._caller)
        self.notifications = groups.Notifications(self._caller)
        self.audit = groups.Audit(self._caller)
        self.idempotency = groups.Idempotency(self._caller)
        self.owners = groups.Owners(self._caller)
        self.sessions = groups.SessionCalls(self._caller)
        self.locks = groups.LockCalls(self._caller)
        self.cell = groups.Cell(self._caller)
        self.server = groups.Server(self._caller)

    def lock(self, names: Union[str, Sequence[str]], *, ttl: float = 30,
             wait: Optional[float] = None, shared: bool = False, slots: int = 1, priority: int = 0,
             value: Optional[str] = None, delay: float = 0) -> Lock:
        """A lock, or a set of them: `with client.lock("nightly") as lock: write(lock.fence)`.

        ttl       after how many seconds without a sign of life of this process others may have it
        wait      for how many seconds to wait for it; None: for ever; 0: not at all
        shared    beside other shared ones
        slots     how many may hold it at once; all who ask say the same
        priority  larger goes first
        value     what others can read while it is held: where the leader listens
        delay     for how many seconds it stays blocked if it is lost
        """
        return Lock(self._caller, self._sessions, [names] if isinstance(names, str) else names,
                    ttl=ttl, wait=wait, shared=shared, slots=slots, priority=priority, value=value,
                    delay=delay)

    def close(self) -> None:
        """Ends the client's streams, maps and sessions, which releases its locks, and closes connections.
        A thread that waits for a lock gets HoldfastError `client_closed`.  A call after it begins anew."""
        for stream in self._caller.streams.valuerefs():
            found = stream()
            if found:
                found.close()
        self._sessions.close(min(5.0, self._caller.timeout))
        self._caller.transport.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<holdfast.Client {', '.join(self._caller.servers.origins)}>"
