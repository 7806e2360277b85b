"""The operations of the API, one method each, in groups.

Fields that a method does not name go into the request as they are; those that are None are left
out, except in `events.change`, where None takes a limit or a time away.  Every method has a
`timeout` in seconds for all its attempts, and those that write have an `idempotency_key`.
"""

import secrets
import time
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from .calls import Caller, pause_s, segment
from .resource import Resource
from .streams import SeatMap, Stream

# The operations of openapi.yaml, and the methods that make them.
OPERATIONS = {
    "listEvents": "events.list", "createEvent": "events.create", "getEvent": "events.get",
    "changeEvent": "events.change", "getPlan": "events.plan", "getSeatMap": "events.seats",
    "getSeat": "events.seat", "getHeat": "events.heat", "getRevenue": "events.revenue",
    "streamChanges": "events.stream", "checkPlan": "events.check",
    "blockSeats": "events.block", "unblockSeats": "events.unblock", "closeEvent": "events.close",
    "openEvent": "events.open", "archiveEvent": "events.archive", "cancelEvent": "events.cancel",
    "listHolds": "holds.list", "createHold": "holds.create", "getHold": "holds.get",
    "changeHold": "holds.change", "releaseHold": "holds.release", "renewHold": "holds.renew",
    "confirmHold": "holds.confirm", "evictHold": "holds.evict",
    "pauseWaitlist": "waitlist.pause", "resumeWaitlist": "waitlist.resume",
    "listWaitlist": "waitlist.list", "joinWaitlist": "waitlist.create",
    "getWaitlistEntry": "waitlist.get", "leaveWaitlist": "waitlist.leave",
    "streamWaitlistEntry": "waitlist.stream", "moveWaitlistEntryFirst": "waitlist.first",
    "evictWaitlistEntry": "waitlist.evict",
    "listBookings": "bookings.list", "createBooking": "bookings.create",
    "getBooking": "bookings.get", "cancelBooking": "bookings.cancel",
    "refundBooking": "bookings.refund",
    "listRefunds": "refunds.list", "listNotifications": "notifications.list",
    "readAudit": "audit.list", "getStoredAnswer": "idempotency.get", "eraseOwner": "owners.erase",
    "openSession": "sessions.open", "closeSession": "sessions.close",
    "keepSessionAlive": "sessions.keep_alive", "streamSession": "sessions.stream",
    "listLocks": "locks.list", "getLock": "locks.get", "acquireLock": "locks.acquire",
    "releaseLock": "locks.release", "setLockValue": "locks.set_value",
    "breakLock": "locks.break_lock", "streamLock": "locks.stream",
    "getCell": "cell.get", "transferMastership": "cell.transfer",
    "getHealth": "server.health", "getReadiness": "server.readiness",
    "getMetrics": "server.metrics", "getSamples": "server.samples",
    "getDocument": "server.document", "receiveWebhook": "server.receive_webhook",
}

Key = Optional[str]
Seconds = Optional[float]
Places = Mapping[str, Any]


def _given(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class _Group:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def _get(self, path: str, timeout: Seconds, **query: Any) -> Resource:
        found: Resource = self._caller.json("GET", path, query=query, timeout=timeout)
        return found

    def _write(self, path: str, body: Optional[Mapping[str, Any]], key: Key, timeout: Seconds,
               method: str = "POST") -> Resource:
        done: Resource = self._caller.json(method, path, body=body, has_key=True,
                                           idempotency_key=key, timeout=timeout)
        return done

    def _send(self, path: str, body: Optional[Mapping[str, Any]], timeout: Seconds,
              method: str = "POST", wait: float = 0) -> Resource:
        done: Resource = self._caller.json(method, path, body=body, timeout=timeout, wait=wait)
        return done


def _path(kind: str, id: str, *rest: str) -> str:
    return "/".join(["/v1", kind, segment(id), *rest])


class Events(_Group):
    def list(self, *, upcoming: Optional[bool] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/events", timeout, upcoming=upcoming, limit=limit, cursor=cursor)

    def create(self, *, name: str, currency: str, idempotency_key: Key = None,
               timeout: Seconds = None, **fields: Any) -> Resource:
        return self._write("/v1/events", {"name": name, "currency": currency, **_given(**fields)},
                           idempotency_key, timeout)

    def get(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("events", id), timeout)

    def change(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None,
               **fields: Any) -> Resource:
        return self._write(_path("events", id), fields, idempotency_key, timeout, "PATCH")

    def plan(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("events", id, "plan"), timeout)

    def seats(self, id: str, *, at: Optional[str] = None, timeout: Seconds = None) -> Resource:
        """The map of all seats, once; `seat_map` keeps one up to date."""
        return self._get(_path("events", id, "seats"), timeout, at=at)

    def seat(self, id: str, seat: str, *, at: Optional[str] = None,
             timeout: Seconds = None) -> Resource:
        return self._get(_path("events", id, "seats", segment(seat)), timeout, at=at)

    def heat(self, id: str, *, limit: Optional[int] = None, timeout: Seconds = None) -> Resource:
        return self._get(_path("events", id, "heat"), timeout, limit=limit)

    def check(self, *, name: str, currency: str, timeout: Seconds = None,
              **fields: Any) -> Resource:
        """Would this event be created, and how would it be drawn?  The `complaints` of a refusal
        list all that is wrong."""
        return self._send("/v1/plans/check", {"name": name, "currency": currency,
                                              **_given(**fields)}, timeout)

    def revenue(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("events", id, "revenue"), timeout)

    def stream(self, id: str, *, after: Optional[int] = None) -> Stream:
        """Changes of the event, each once and in order, from now on or from a `seq` on:
        `seats` with its `changes` and `areas`, `event` with its `status` and `prices`, and with its
        `types` if there are any, and `reset`
        with the whole `map` where changes in between are not known any more."""
        def read(seq: int) -> Tuple[Resource, int]:
            found = self._read_map(id, seq)
            return Resource(type="reset", seq=found["seq"], map=found), found["seq"]
        return Stream(self._caller, _path("events", id, "stream"), after, read)

    def seat_map(self, id: str, *, timeout: Seconds = None) -> SeatMap:
        """The map, kept up to date in the background until it is closed."""
        return SeatMap(self.plan(id, timeout=timeout), lambda: self.seats(id, timeout=timeout),
                       lambda seq: self.stream(id, after=seq))

    def _read_map(self, id: str, seq: int) -> Resource:
        while True:
            found = self.seats(id)
            if found["seq"] >= seq:
                return found
            time.sleep(pause_s(2))  # of a server that has not heard of it yet

    def block(self, id: str, *, seats: Optional[Sequence[str]] = None,
              sections: Optional[Sequence[str]] = None, areas: Optional[Places] = None,
              channel: Optional[str] = None, idempotency_key: Key = None,
              timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "block"), _given(
            seats=seats, sections=sections, areas=areas, channel=channel), idempotency_key, timeout)

    def unblock(self, id: str, *, seats: Optional[Sequence[str]] = None,
                sections: Optional[Sequence[str]] = None, areas: Optional[Places] = None,
                channel: Optional[str] = None, idempotency_key: Key = None,
                timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "unblock"), _given(
            seats=seats, sections=sections, areas=areas, channel=channel), idempotency_key, timeout)

    def close(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "close"), None, idempotency_key, timeout)

    def open(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "open"), None, idempotency_key, timeout)

    def archive(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "archive"), None, idempotency_key, timeout)

    def cancel(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "cancel"), None, idempotency_key, timeout)


class Holds(_Group):
    def list(self, *, event: str, status: Optional[str] = None, owner: Optional[str] = None,
             limit: Optional[int] = None, cursor: Optional[str] = None,
             timeout: Seconds = None) -> Resource:
        return self._get("/v1/holds", timeout, event=event, status=status, owner=owner,
                         limit=limit, cursor=cursor)

    def create(self, *, event: str, seats: Optional[Sequence[str]] = None,
               best_available: Optional[Mapping[str, Any]] = None,
               areas: Optional[Places] = None, types: Optional[Mapping[str, str]] = None,
               owner: Optional[str] = None,
               ttl_ms: Optional[int] = None, metadata: Optional[Mapping[str, Any]] = None,
               channel: Optional[str] = None, resume: Optional[bool] = None,
               idempotency_key: Key = None, timeout: Seconds = None, **fields: Any) -> Resource:
        return self._write("/v1/holds", _given(
            event=event, seats=seats, best_available=best_available, areas=areas, types=types,
            owner=owner, ttl_ms=ttl_ms, metadata=metadata, channel=channel, resume=resume, **fields),
            idempotency_key, timeout)

    def get(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("holds", id), timeout)

    def change(self, id: str, *, fence: int, add: Optional[Places] = None,
               remove: Optional[Places] = None, types: Optional[Mapping[str, str]] = None,
               idempotency_key: Key = None, timeout: Seconds = None, **fields: Any) -> Resource:
        return self._write(_path("holds", id), _given(
            fence=fence, add=add, remove=remove, types=types, **fields), idempotency_key, timeout,
            "PATCH")

    def release(self, id: str, *, timeout: Seconds = None) -> None:
        self._send(_path("holds", id), None, timeout, "DELETE")

    def renew(self, id: str, *, ttl_ms: Optional[int] = None, idempotency_key: Key = None,
              timeout: Seconds = None) -> Resource:
        return self._write(_path("holds", id, "renew"), _given(ttl_ms=ttl_ms), idempotency_key,
                           timeout)

    def confirm(self, id: str, *, fence: int, reference: Optional[str] = None,
                rescue: Optional[bool] = None, idempotency_key: Key = None,
                timeout: Seconds = None) -> Resource:
        return self._write(_path("holds", id, "confirm"), _given(
            fence=fence, reference=reference, rescue=rescue), idempotency_key, timeout)

    def evict(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("holds", id, "evict"), None, idempotency_key, timeout)


class Waitlist(_Group):
    def list(self, *, event: Optional[str] = None, status: Optional[str] = None,
             owner: Optional[str] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/waitlist", timeout, event=event, status=status, owner=owner,
                         limit=limit, cursor=cursor)

    def create(self, *, event: str, best_available: Optional[Mapping[str, Any]] = None,
               areas: Optional[Places] = None, owner: Optional[str] = None,
               until: Optional[str] = None, metadata: Optional[Mapping[str, Any]] = None,
               idempotency_key: Key = None, timeout: Seconds = None, **fields: Any) -> Resource:
        return self._write("/v1/waitlist", _given(
            event=event, best_available=best_available, areas=areas, owner=owner, until=until,
            metadata=metadata, **fields), idempotency_key, timeout)

    def get(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("waitlist", id), timeout)

    def leave(self, id: str, *, timeout: Seconds = None) -> None:
        self._send(_path("waitlist", id), None, timeout, "DELETE")

    def stream(self, id: str, *, after: Optional[int] = None) -> Stream:
        """What becomes of an entry: `offered`, `lapsed`, `ended`, and `reset` with the `entry` as
        it is where a connection was lost.  The stream ends with the entry."""
        def read(seq: int) -> Tuple[Resource, int]:
            return Resource(type="reset", entry=self.get(id)), seq
        return Stream(self._caller, _path("waitlist", id, "stream"), after, read)

    def first(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("waitlist", id, "first"), None, idempotency_key, timeout)

    def evict(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("waitlist", id, "evict"), None, idempotency_key, timeout)

    def pause(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        """Offers nothing of this event to those who wait."""
        return self._write(_path("events", id, "waitlist", "pause"), None, idempotency_key, timeout)

    def resume(self, id: str, *, idempotency_key: Key = None, timeout: Seconds = None) -> Resource:
        return self._write(_path("events", id, "waitlist", "resume"), None, idempotency_key,
                           timeout)


class Bookings(_Group):
    def list(self, *, event: Optional[str] = None, status: Optional[str] = None,
             reference: Optional[str] = None, owner: Optional[str] = None,
             limit: Optional[int] = None, cursor: Optional[str] = None,
             timeout: Seconds = None) -> Resource:
        return self._get("/v1/bookings", timeout, event=event, status=status, reference=reference,
                         owner=owner, limit=limit, cursor=cursor)

    def create(self, *, hold: Optional[str] = None, holds: Optional[Sequence[str]] = None,
               email: Optional[str] = None, reference: Optional[str] = None,
               idempotency_key: Key = None, timeout: Seconds = None, **fields: Any) -> Resource:
        return self._write("/v1/bookings", _given(
            hold=hold, holds=holds, email=email, reference=reference, **fields), idempotency_key,
            timeout)

    def get(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._get(_path("bookings", id), timeout)

    def cancel(self, id: str, *, reason: Optional[str] = None, idempotency_key: Key = None,
               timeout: Seconds = None) -> Resource:
        return self._write(_path("bookings", id, "cancel"), _given(reason=reason), idempotency_key,
                           timeout)

    def refund(self, id: str, *, amount: Optional[int] = None, idempotency_key: Key = None,
               timeout: Seconds = None) -> Resource:
        return self._write(_path("bookings", id, "refund"), _given(amount=amount), idempotency_key,
                           timeout)


class Refunds(_Group):
    def list(self, *, status: Optional[str] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/refunds", timeout, status=status, limit=limit, cursor=cursor)


class Notifications(_Group):
    def list(self, *, status: Optional[str] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/notifications", timeout, status=status, limit=limit, cursor=cursor)


class Audit(_Group):
    def list(self, *, event: Optional[str] = None, seat: Optional[str] = None,
             hold: Optional[str] = None, after: Optional[int] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/audit", timeout, event=event, seat=seat, hold=hold, after=after,
                         limit=limit, cursor=cursor)


class Idempotency(_Group):
    def get(self, id: str, *, timeout: Seconds = None) -> Optional[Resource]:
        """The body of the answer that a repeat with this key would get; None if it had none."""
        return self._get(_path("idempotency", id), timeout)


class Owners(_Group):
    def erase(self, owner: str, *, idempotency_key: Key = None,
              timeout: Seconds = None) -> Resource:
        return self._write("/v1/owners/erase", {"owner": owner}, idempotency_key, timeout)


class SessionCalls(_Group):
    """Sessions by hand; `client.lock` has one of its own."""

    def open(self, *, ttl_ms: int, label: Optional[str] = None,
             timeout: Seconds = None) -> Resource:
        return self._send("/v1/sessions", _given(ttl_ms=ttl_ms, label=label), timeout)

    def close(self, id: str, *, timeout: Seconds = None) -> None:
        self._send(_path("sessions", id), None, timeout, "DELETE")

    def keep_alive(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._send(_path("sessions", id, "keepalive"), None, timeout)

    def stream(self, id: str, *, after: Optional[int] = None) -> Stream:
        return Stream(self._caller, _path("sessions", id, "stream"), after)


class LockCalls(_Group):
    """What there is to see of locks, and locks by hand; `client.lock` is what holds one."""

    def list(self, *, prefix: Optional[str] = None, waiting: Optional[bool] = None,
             stale: Optional[bool] = None, limit: Optional[int] = None,
             cursor: Optional[str] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/locks", timeout, prefix=prefix, waiting=waiting, stale=stale,
                         limit=limit, cursor=cursor)

    def get(self, id: str, *, stale: Optional[bool] = None, timeout: Seconds = None) -> Resource:
        return self._get(_path("locks", id), timeout, stale=stale)

    def acquire(self, id: str, *, session: str, owner: Optional[str] = None, wait_ms: int = 0,
                timeout: Seconds = None, **fields: Any) -> Resource:
        return self._send(_path("locks", id), {
            "session": session, "owner": owner or secrets.token_hex(16), "wait_ms": wait_ms,
            **_given(**fields)}, timeout, wait=wait_ms / 1000)

    def release(self, id: str, *, session: str, owner: str, fence: Optional[int] = None,
                timeout: Seconds = None) -> Resource:
        return self._send(_path("locks", id, "release"), _given(
            session=session, owner=owner, fence=fence), timeout)

    def set_value(self, id: str, *, session: str, owner: str, fence: int, value: Optional[str],
                  timeout: Seconds = None) -> Resource:
        return self._send(_path("locks", id, "value"), {
            "session": session, "owner": owner, "fence": fence, "value": value}, timeout, "PUT")

    def break_lock(self, id: str, *, timeout: Seconds = None) -> Resource:
        return self._send(_path("locks", id, "break"), None, timeout)

    def stream(self, id: str, *, after: Optional[int] = None) -> Stream:
        """What happens to a lock: `granted`, `released`, `lost`, `value`; and `reset` with the
        `lock` as it is where events in between are not known any more."""
        def read(seq: int) -> Tuple[Resource, int]:
            return Resource(type="reset", index=seq, lock=self.get(id)), seq
        return Stream(self._caller, _path("locks", id, "stream"), after, read)

    watch = stream


class Cell(_Group):
    def get(self, *, timeout: Seconds = None) -> Resource:
        return self._get("/v1/cell", timeout)

    def transfer(self, *, timeout: Seconds = None) -> Resource:
        return self._send("/v1/cell/transfer", None, timeout)


class Server(_Group):
    def health(self, *, timeout: Seconds = None) -> Resource:
        return self._get("/healthz", timeout)

    def readiness(self, *, reads: bool = False, timeout: Seconds = None, **query: Any) -> Resource:
        """With `reads`, whether it can serve maps and streams."""
        if reads:
            query["for"] = "reads"
        return self._get("/readyz", timeout, **query)

    def metrics(self, *, timeout: Seconds = None) -> str:
        return self._caller.call("GET", "/metrics", timeout=timeout).body.decode()

    def samples(self, *, after: Optional[int] = None, timeout: Seconds = None) -> Resource:
        return self._get("/v1/ops/samples", timeout, after=after)

    def document(self, *, timeout: Seconds = None) -> str:
        return self._caller.call("GET", "/openapi.yaml", timeout=timeout).body.decode()

    def receive_webhook(self, *, body: bytes, signature: str, timeout: Seconds = None) -> Resource:
        """Passes on what Stripe has sent, for a shop that receives it itself."""
        answer: Resource = self._caller.json("POST", "/v1/webhooks/stripe", body=body,
                                             headers={"Stripe-Signature": signature},
                                             timeout=timeout)
        return answer
