"""Streams: changes as they happen, each once and in order, whatever becomes of connections."""

import http.client
import threading
from contextlib import AbstractContextManager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .calls import Caller, pause_s
from .errors import HoldfastError, Unavailable
from .resource import Resource, parse
from .transport import Exchange

_SILENCE_S = 45.0  # the server sends something every 15 s

# Reads the state anew after a `reset`: returns (the message for the reader, where it goes on).
Restart = Callable[[int], Tuple[Resource, int]]


class Stream(Iterator[Resource], AbstractContextManager["Stream"]):
    """An iterator over changes; each has a `type`.  It reconnects by itself and ends with `close`,
    or when what it tells of has ended.

    Several threads may not iterate at once; any thread may close it.
    """

    def __init__(self, caller: Caller, path: str, after: Optional[int],
                 restart: Optional[Restart] = None) -> None:
        self._caller = caller
        self._path = path
        self._last = after  # the last id whose messages were all delivered
        self._restart = restart
        self._ready: List[Resource] = []    # to be delivered
        self._pending: List[Resource] = []  # without an id yet: its group is not complete
        self._event: Dict[str, str] = {}
        self._rest = b""
        self._retry_s: Optional[float] = None
        self._was_open = False
        self._failures = 0
        self._exchange: Optional[Exchange] = None
        self._closed = threading.Event()
        caller.streams[id(self)] = self

    def __iter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> "Stream":
        """Connects: what happens from now on will be delivered.  Without it the first `next` does."""
        while not self._closed.is_set() and not self._exchange:
            self._step()
        return self

    def close(self) -> None:
        """Ends the stream, also while another thread waits for the next change."""
        self._closed.set()
        exchange = self._exchange
        if exchange:
            exchange.stop()

    def __next__(self) -> Resource:
        while not self._closed.is_set():
            if self._ready:
                return self._ready.pop(0)
            self._step()
        self._drop()
        raise StopIteration

    def _step(self) -> None:
        """Connects, or reads some of what comes.  Raises what is no use to repeat."""
        try:
            if not self._exchange:
                self._connect()
            elif not self._read(self._exchange):
                self._drop()
                self._closed.wait(self._retry_s or 0)
        except (OSError, ValueError, http.client.HTTPException):
            if not self._closed.is_set():
                self._fail(None)
        except HoldfastError as error:
            self._drop()
            if not isinstance(error, Unavailable) and (error.status or 0) < 500:
                self._closed.set()
                raise
            self._fail(error.retry_after)

    def _fail(self, retry_after: Optional[float]) -> None:
        self._drop()
        self._closed.wait(retry_after or pause_s(self._failures))
        self._failures += 1

    def _drop(self) -> None:
        if self._exchange:
            self._exchange.close()
        self._exchange = None
        self._pending, self._event, self._rest = [], {}, b""

    def _connect(self) -> None:
        last = {} if self._last is None else {"Last-Event-ID": str(self._last)}
        exchange = self._caller.open(self._path, {}, last, _SILENCE_S)
        self._exchange = exchange
        if exchange.response.status == 204:  # there will be nothing more to tell
            self._closed.set()
        if self._closed.is_set():
            exchange.stop()
        if self._was_open and self._last is None:  # it broke before it had said where it was
            self._reset(0)
        self._was_open = True

    def _read(self, exchange: Exchange) -> bool:
        data = exchange.read_some()
        self._failures = 0
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line.rstrip(b"\r").decode())
        return bool(data)

    def _line(self, line: str) -> None:
        if line:
            name, _, value = line.partition(":")
            self._event[name] = value[1:] if value.startswith(" ") else value
            return
        event, self._event = self._event, {}
        if event.get("retry", "").isdecimal():
            self._retry_s = int(event["retry"]) / 1000
        seq = int(event["id"]) if event.get("id", "").isdecimal() else None
        if "data" in event:
            message = parse(event["data"].encode())
            if event.get("event") == "reset":
                return self._reset(int(message["seq"]))
            self._pending.append(Resource(type=event.get("event", "message"), **message))
        if seq is not None:  # the group is complete
            if self._last is None or seq > self._last:
                self._ready += self._pending
                self._last = seq
            self._pending = []

    def _reset(self, seq: int) -> None:
        """The stream goes on from `seq`; the state that is read may be newer."""
        message = Resource(type="reset", seq=seq)
        if self._restart:
            message, seq = self._restart(seq)
        self._ready.append(message)
        self._last = seq or None
        self._pending = []


class SeatMap(AbstractContextManager["SeatMap"]):
    """The seats and areas of an event, kept up to date in the background.

    seats   the state of each seat by its id: `available`, `held`, `booked` or `blocked`
    areas   how many places of each area are available
    status, prices, types, seq
    """

    _STATES = {".": "available", "h": "held", "b": "booked", "x": "blocked"}

    def __init__(self, plan: Resource, read: Callable[[], Resource],
                 follow: Callable[[int], Stream]) -> None:
        self._ids = [seat["id"] for section in plan["sections"]
                     for row in section["rows"] for seat in row["seats"]]
        self._changed = threading.Condition()
        self._error: Optional[HoldfastError] = None
        first = read()
        self._load(first)
        self._stream = follow(first["seq"])
        self._thread = threading.Thread(target=self._follow, name="holdfast-map", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._thread.join()

    def wait_for(self, is_so: Callable[["SeatMap"], bool], timeout: Optional[float] = None) -> bool:
        """Waits until it is so of the map; False after the timeout.  Raises what ended the stream."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or is_so(self), timeout)
            if self._error:
                raise self._error
            return is_so(self)

    def snapshot(self) -> Resource:
        """A copy of all of it, of one moment."""
        with self._changed:
            return Resource(seq=self.seq, status=self.status, prices=dict(self.prices),
                            types=list(self.types), seats=dict(self.seats), areas=dict(self.areas))

    def _follow(self) -> None:
        try:
            for change in self._stream:
                with self._changed:
                    self._apply(change)
                    self._changed.notify_all()
        except HoldfastError as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _load(self, read: Resource) -> None:
        letters = "".join(row["seats"] for section in read["sections"] for row in section["rows"])
        self.seq: int = read["seq"]
        self.status: str = read["status"]
        self.prices: Dict[str, int] = read["prices"]
        self.types: List[Resource] = read.get("types", [])
        self.seats: Dict[str, str] = dict(zip(self._ids, (self._STATES[each] for each in letters)))
        self.areas: Dict[str, int] = {area["name"]: area["available"] for area in read["areas"]}

    def _apply(self, change: Resource) -> None:
        if change.type == "reset":
            self._load(change["map"])
        elif change.type == "event":
            self.status, self.prices = change["status"], change["prices"]
            self.types = change.get("types", [])
        else:
            self.seats.update((seat, self._STATES[letter]) for seat, letter in change["changes"])
            self.areas.update(change["areas"])
        self.seq = max(self.seq, change.get("seq", 0))
