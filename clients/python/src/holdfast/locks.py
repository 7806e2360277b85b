"""Locks, as programs hold them: acquired in the name of a session, and told when they are lost."""

import os
import secrets
import threading
import weakref
from contextvars import ContextVar
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .calls import Caller, segment
from .clock import now
from .errors import Conflict, Gone, LockLost, NotFound
from .resource import Resource
from .sessions import Session, Sessions, lock_path

_POLL_S = 20.0    # the longest wait of one request
_CLAIM_MS = 500   # how long the service keeps a turn that this client has not claimed

_every: "weakref.WeakSet[Lock]" = weakref.WeakSet()  # the locks of this process


# Who waits, for the detection of deadlocks: a thread, or what asyncio.to_thread runs in one.
_named: "ContextVar[Tuple[int, str]]" = ContextVar("holdfast_agent", default=(0, ""))


def _agent() -> str:
    thread, name = _named.get()
    if thread != threading.get_ident():
        name = secrets.token_hex(8)
        _named.set((threading.get_ident(), name))
    return name


class Grant:
    """One name that is held."""

    def __init__(self, lock: "Lock", session: Session, name: str, owner: str,
                 answer: Resource) -> None:
        self._lock = lock
        self.session = session
        self.name = name
        self.owner = owner
        self.fence: int = answer["fence"]
        self.slot: int = answer["slot"]
        self.is_lost = False

    def lose(self) -> None:
        self.is_lost = True
        self._lock.lost.set()


class Lock:
    """A lock, or a set of locks that are held together.  A context manager; not reentrant.

    lost     a threading.Event: set when it is lost, before anybody else can have it
    fence    a number that grows with every grant; send it with each write that the lock protects
    fences   the fences by name, of a set; `fence` is that of the first name in sorted order
    slot     which of the slots it has, from 0
    """

    def __init__(self, caller: Caller, sessions: Sessions, names: Sequence[str], *, ttl: float,
                 wait: Optional[float], shared: bool, slots: int, priority: int,
                 value: Optional[str], delay: float) -> None:
        if not names:
            raise ValueError("a lock needs a name")
        for name in names:
            segment(name)
        self.names: Tuple[str, ...] = tuple(sorted(set(names)))
        self.lost = threading.Event()
        self._caller = caller
        self._sessions = sessions
        self._ttl = ttl
        self._wait = wait
        self._fields: Dict[str, Any] = {"mode": "shared" if shared else "exclusive"}
        if slots != 1:
            self._fields["slots"] = slots
        if priority:
            self._fields["priority"] = priority
        if value is not None:
            self._fields["value"] = value
        if delay:
            self._fields["delay_ms"] = round(delay * 1000)
        self._grants: List[Grant] = []
        self._fences: Dict[str, int] = {}
        self._slot = 0
        self._pid = os.getpid()
        _every.add(self)

    def __repr__(self) -> str:
        return f"<holdfast.Lock {', '.join(self.names)}: {'held' if self.held else 'not held'}>"

    # ---- what one has ----

    @property
    def fences(self) -> Dict[str, int]:
        return dict(self._fences)

    @property
    def fence(self) -> int:
        return self._fences[self.names[0]]

    @property
    def slot(self) -> int:
        return self._slot

    @property
    def resource(self) -> str:
        """The name for guards that check fences: each slot is a resource of its own."""
        name = self.names[0]
        return name if self._fields.get("slots", 1) == 1 else f"{name}#{self._slot}"

    @property
    def held(self) -> bool:
        """Whether it is held now; compares the clocks itself."""
        if not self._grants or self._pid != os.getpid() or self.lost.is_set():
            return False
        if all(grant.session.is_alive() and not grant.is_lost for grant in self._grants):
            return True
        self.lost.set()
        return False

    def check(self) -> None:
        """Raises LockLost unless it is held now."""
        if not self.held:
            raise LockLost("lock_lost", "The lock is not held.")

    def set_value(self, value: Optional[str]) -> None:
        """Leaves a value for everybody to read: where the leader listens, for instance."""
        self.check()
        for grant in self._grants:
            try:
                self._caller.json("PUT", lock_path(grant.name, "/value"), body={
                    "session": grant.session.id, "owner": grant.owner, "fence": grant.fence,
                    "value": value})
            except (Gone, NotFound) as error:
                self.lost.set()
                raise LockLost("lock_lost", error.detail, status=error.status) from error

    # ---- taking and giving it ----

    def __enter__(self) -> "Lock":
        return self.acquire()

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.release()
        except LockLost:
            if kind is None:  # else the block's own exception says more
                raise

    def acquire(self) -> "Lock":
        """Takes it.  Raises Conflict `lock_taken` when the wait is over, `deadlock` if to wait would
        never end, Unavailable if no server answers for as long as calls may take."""
        if self._pid != os.getpid():
            self._grants = []  # the parent's
        if self._grants:
            raise RuntimeError("this lock is held already; make another one")
        until = None if self._wait is None else now() + self._wait
        self.lost = threading.Event()
        self._pid = os.getpid()
        n_closed = self._sessions.n_closed
        while True:
            try:
                for name in self.names:
                    self._grants.append(self._take(name, until, n_closed))
            except BaseException:
                self._give_back()
                raise
            self._fences = {grant.name: grant.fence for grant in self._grants}
            self._slot = self._grants[0].slot
            if self.held:
                return self
            self._give_back()  # one was lost while the next was waited for
            self.lost = threading.Event()

    def release(self) -> None:
        """Gives it back.  Raises LockLost if it was lost before."""
        if not self._grants:
            return
        if self._pid != os.getpid():
            self._grants = []  # the parent's
            raise LockLost("lock_lost", "The lock belongs to another process.")
        was_held = self.held
        if not self._give_back() or not was_held:
            raise LockLost("lock_lost", "The lock was lost before it was released.")

    def _give_back(self) -> bool:
        was_held = True
        while self._grants:
            grant = self._grants.pop()
            grant.session.drop(grant)
            try:
                was_held &= not grant.is_lost and grant.session.release(
                    grant.name, grant.owner, self._caller.timeout)
            except BaseException:
                self._give_back()  # the others
                raise
            finally:
                grant.session.leave()
        return was_held

    def _take(self, name: str, until: Optional[float], n_closed: int) -> Grant:
        """Takes one name: session by session, and owner by owner."""
        while True:
            session = self._sessions.get(self._ttl, n_closed)
            try:
                grant = self._take_in(session, name, until)
                if grant and session.add(grant):
                    session.use()
                    return grant
            finally:
                session.leave()

    def _take_in(self, session: Session, name: str, until: Optional[float]) -> Optional[Grant]:
        """None: the session or the place has ended; ask again with another owner."""
        owner = secrets.token_hex(16)
        fields = {**self._fields, "session": session.id, "owner": owner,
                  "agent": _agent()}
        session.settle(self._caller.timeout)
        try:
            while True:
                left = _POLL_S if until is None else min(_POLL_S, max(0.0, until - now()))
                try:
                    answer = self._ask(name, fields, left)
                except Conflict as error:
                    if error.code == "lock_taken" and (until is None or now() < until):
                        continue
                    raise
                if answer.get("claimed") is not False:  # else it is our turn: ask again to claim it
                    return Grant(self, session, name, owner, answer)
        except (Gone, NotFound) as error:
            if error.code in ("session_expired", "no_such_session"):
                session.end()
            elif error.code != "lock_lost":  # its place has ended
                raise
            return None
        except BaseException as error:  # gives the place back, or what nobody knows to be granted
            if not isinstance(error, Conflict) or (error.code == "lock_taken" and self._wait != 0):
                session.release(name, owner, min(1.0, self._caller.timeout))
            raise

    def _ask(self, name: str, fields: Dict[str, Any], wait: float) -> Resource:
        if self._wait != 0:
            fields = {**fields, "wait_ms": max(1, round(wait * 1000)), "claim": True,
                      "claim_ms": _CLAIM_MS}
        found: Resource = self._caller.json("POST", lock_path(name), body=fields, wait=wait,
                                            attempt=max(0.5, self._ttl / 4))
        return found


def _after_fork() -> None:
    """A lock of the parent is not held in the child."""
    for lock in list(_every):
        lock.lost = threading.Event()
        lock.lost.set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
