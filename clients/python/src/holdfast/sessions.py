"""The session behind the locks of a client: opened on first use, kept alive in the background.

Invariants
  The session is relied on until `sent + TTL - margin`, where `sent` was read before the last
  answered open or keep-alive went out, on a clock that goes on while the machine sleeps.  Nothing
  else moves that moment.  The server counts the TTL from when it got the request, so it cannot give
  a lock to another client before.
  A session that was not proved to live by then is given up: all its locks are lost at once.
  A lock that nobody wants any more is released until the server has said so.
"""

import os
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Set, Tuple

from .calls import Caller, pause_s, segment
from .clock import now
from .errors import Gone, HoldfastError, NotFound, OutcomeUnknown, Unavailable
from .resource import parse
from .streams import Stream

if TYPE_CHECKING:
    from .locks import Grant

_LOOK_S = 1.0  # timers stand still while a machine sleeps: the clock is read at least this often


def margin_s(ttl: float) -> float:
    """By how much the deadline lies before the end of the session: clocks differ in their rates."""
    return max(0.05, ttl / 100)


def lock_path(name: str, what: str = "") -> str:
    return f"/v1/locks/{segment(name)}{what}"


class Session:
    """A session with the lock service.  All methods may be called by any thread."""

    def __init__(self, caller: Caller, ttl: float, label: str) -> None:
        """Opens it.  Raises HoldfastError."""
        self.ttl = ttl
        self._caller = caller
        self._margin = margin_s(ttl)
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._ended = False
        self._users = 0                      # acquisitions and locks that need it
        self._used = now()
        self._grants: Set["Grant"] = set()
        self._broken: Set[str] = set()       # owners of locks that were taken away
        self._owed: Set[Tuple[str, str]] = set()  # releases that were not answered yet
        self._stream: Optional[Stream] = None
        fields = {"ttl_ms": round(ttl * 1000), "label": label}
        answer = caller.call("POST", "/v1/sessions", body=fields, attempt=self._attempt_s())
        self.id: str = parse(answer.body)["id"]
        self._sent = answer.sent
        for work in (self._keep, self._watch, self._listen):
            threading.Thread(target=work, name="holdfast-session", daemon=True).start()

    # ---- is it alive? ----

    @property
    def deadline(self) -> float:
        return self._sent + self.ttl - self._margin

    def is_alive(self) -> bool:
        """Whether its locks are held; compares the clocks itself."""
        return not self._ended and self._pid == os.getpid() and now() < self.deadline

    def end(self) -> None:
        """It is gone: all its locks are lost."""
        with self._changed:
            self._ended = True
            grants, self._grants = self._grants, set()
            self._changed.notify_all()
        for grant in grants:
            grant.lose()
        if self._stream:
            self._stream.close()

    def close(self, timeout: float, only_unused: bool = False) -> None:
        """Ends it, and tells the server, which releases its locks."""
        with self._changed:
            was_alive = self.is_alive()
            if only_unused and self._users > 0:
                return
            self._ended = True
        self.end()
        if was_alive:
            try:
                self._caller.call("DELETE", f"/v1/sessions/{self.id}", timeout=timeout)
            except HoldfastError:
                pass  # it ends by itself

    # ---- its users ----

    def use(self) -> bool:
        """Keeps it from being closed as unused; False: it has ended."""
        with self._changed:
            if not self.is_alive():
                return False
            self._users += 1
            return True

    def leave(self) -> None:
        with self._changed:
            self._users -= 1
            self._used = now()

    def add(self, grant: "Grant") -> bool:
        """A lock was granted; False: it is lost already."""
        with self._changed:
            if not self.is_alive() or grant.owner in self._broken:
                return False
            self._grants.add(grant)
            return True

    def drop(self, grant: "Grant") -> None:
        with self._changed:
            self._grants.discard(grant)

    def release(self, name: str, owner: str, timeout: float) -> bool:
        """Releases a lock or a place in its line.  If that is not answered in time, it is done in the
        background.  False: it was lost before."""
        if not self.is_alive():
            return False
        try:
            self._caller.call("POST", lock_path(name, "/release"),
                              body={"session": self.id, "owner": owner},
                              timeout=max(0.0, min(timeout, self.deadline - now())))
        except (Gone, NotFound) as error:
            return error.may_be_ours
        except BaseException as error:
            if _is_verdict(error):
                raise
            with self._changed:
                self._owed.add((name, owner))
                self._changed.notify_all()
            if not isinstance(error, HoldfastError):
                raise
        return True

    def settle(self, timeout: float) -> None:
        """Makes the releases that are owed.  Before a request that waits, or else the service would
        think that this client waits for itself."""
        for name, owner in list(self._owed):
            with self._changed:
                self._owed.discard((name, owner))
            self.release(name, owner, timeout)

    # ---- in the background ----

    def _attempt_s(self) -> float:
        return max(0.5, self.ttl / 4)

    def _wait(self, until: float) -> None:
        with self._changed:
            if not self._ended:
                self._changed.wait(max(0.0, min(until - now(), _LOOK_S)))

    def _keep(self) -> None:
        failures = 0
        ask = self._sent + self.ttl / 3
        while self.is_alive():
            if now() < ask and not self._owed:
                self._wait(ask)
                continue
            if self._users == 0 and not self._owed and now() - self._used > self.ttl:
                self.close(self.ttl, only_unused=True)
                continue
            try:
                if now() >= ask:
                    answer = self._caller.call("POST", f"/v1/sessions/{self.id}/keepalive",
                                               timeout=max(0.0, self.deadline - now()),
                                               attempt=self._attempt_s())
                    with self._changed:
                        if not self.is_alive():  # proved too late: it was given up
                            break
                        self._sent = answer.sent
                        self._changed.notify_all()
                    ask = self._sent + self.ttl / 3
                self.settle(max(0.5, ask - now()))
                failures = 0
            except (Gone, NotFound):
                return self.end()
            except HoldfastError:
                self._wait(now() + pause_s(failures))
                failures += 1

    def _watch(self) -> None:
        """Tells the holders in time, also if a keep-alive hangs, and at once after a sleep."""
        while self.is_alive():
            self._wait(self.deadline)
        if self._pid == os.getpid():
            self.end()

    def _listen(self) -> None:
        """Hears of locks that an operator has broken."""
        self._stream = Stream(self._caller, f"/v1/sessions/{self.id}/stream", None)
        if self._ended:
            return
        try:
            self._stream.open()
            self._look_at_all()
            for event in self._stream:
                if event.type == "lost" and event["owner"]:
                    self._broken.add(event["owner"])
                    self._lose(lambda grant: grant.owner in self._broken)
                elif event.type == "reset":
                    self._look_at_all()
        except HoldfastError:
            pass  # the session has ended, which others notice
        finally:
            self._stream.close()

    def _lose(self, is_lost: Callable[["Grant"], bool]) -> None:
        with self._changed:
            lost: List["Grant"] = [grant for grant in self._grants if is_lost(grant)]
            self._grants.difference_update(lost)
        for grant in lost:
            grant.lose()

    def _look_at_all(self) -> None:
        """Asks for every lock whether this session still has it: events may have been missed."""
        with self._changed:
            known = set(self._grants)
        for name in {grant.name for grant in known}:
            while self.is_alive():
                try:
                    found = self._caller.json("GET", lock_path(name))
                except (Unavailable, OutcomeUnknown):
                    self._wait(now() + pause_s(4))
                    continue
                owners = {holder["owner"] for holder in found["holders"]}
                if found["n_holders"] == len(owners):
                    self._lose(lambda grant: grant in known and grant.name == name
                               and grant.owner not in owners)
                break


def _is_verdict(error: BaseException) -> bool:
    return (isinstance(error, HoldfastError) and error.status is not None and error.status < 500
            and not isinstance(error, Unavailable))


class Sessions:
    """The sessions of a client, one for each TTL; in a forked child, none of the parent's."""

    def __init__(self, caller: Caller, label: Optional[str]) -> None:
        self._caller = caller
        self._label = label
        self.n_closed = 0  # how often the client was closed
        self.forked()
        _every.add(self)

    def forked(self) -> None:
        """In the child of a fork: the threads are gone, and mutexes may be locked for ever."""
        self._mutex = threading.Lock()
        self._opening: Dict[float, threading.Lock] = {}
        self._sessions: Dict[float, Session] = {}

    def get(self, ttl: float, n_closed: int) -> Session:
        """A session that lives, in use by the caller, who calls `leave`.  Raises HoldfastError, also if
        the client was closed since it was closed so often."""
        with self._mutex:
            opening = self._opening.setdefault(ttl, threading.Lock())
        with opening:
            while True:
                session = self._sessions.get(ttl)
                if self.n_closed != n_closed:
                    if session:
                        session.close(self._caller.timeout, only_unused=True)
                    raise HoldfastError("client_closed", "The client was closed.")
                if session and session.use():
                    return session
                if session:
                    session.end()
                label = self._label or f"{socket.gethostname()} {os.getpid()}"
                self._sessions[ttl] = Session(self._caller, ttl, label)

    def close(self, timeout: float) -> None:
        self.n_closed += 1
        for session in list(self._sessions.values()):
            session.close(timeout)


_every: "weakref.WeakSet[Sessions]" = weakref.WeakSet()


def _after_fork() -> None:
    for sessions in list(_every):
        sessions.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
