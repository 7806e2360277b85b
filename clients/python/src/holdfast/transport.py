"""One request and its answer over HTTP/1.1.  Connections are kept, each by the thread that made it."""

import http.client
import io
import os
import select
import socket
import ssl
import threading
import time
from email.message import Message
from typing import Any, Callable, Dict, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .clock import now

_IDLE_S = 10.0     # how long a connection is kept for the next request; the server closes it after 30 s
_CONNECT_S = 5.0   # how long one server may take to accept a connection


class NotSent(Exception):
    """The server was not reached: it has not seen the request."""


class Unanswered(Exception):
    """The request may have been carried out; its answer did not come."""

    def __init__(self, text: str, timed_out: bool) -> None:
        super().__init__(text)
        self.timed_out = timed_out


class Answer:
    """An answer, with the moment before its request was sent."""

    def __init__(self, status: int, headers: Message, body: bytes, sent: float) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.sent = sent
        self.is_repeat = False  # an earlier attempt may have been carried out


class _Reader(io.RawIOBase):
    """Reads from a socket, and asks before each read how long it may take."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(max(self._left(), 0.001))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Socket:
    """What http.client needs of a socket to read an answer."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._made = sock, left

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reader(*self._made))


class Exchange:
    """A request that was sent, and the answer whose head has come."""

    def __init__(self, connection: http.client.HTTPConnection, sock: socket.socket,
                 response: http.client.HTTPResponse, sent: float) -> None:
        self.connection = connection
        self.response = response
        self.sent = sent
        self._sock = sock

    def read_some(self) -> bytes:
        """What has come of the body; b"" at its end.  Raises OSError or HTTPException."""
        return self.response.read1(65536)

    def stop(self) -> None:
        """Ends a read that another thread waits in."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self.stop()
        self.response.close()
        self.connection.close()


class _Kept(Dict[str, Tuple[http.client.HTTPConnection, float]]):
    """The connections of a thread, which are closed when it ends."""

    def __del__(self) -> None:
        while self:
            self.popitem()[1][0].close()


class Transport:
    """Sends requests.  Any thread may call it, also after a fork."""

    def __init__(self, tls: Optional[ssl.SSLContext]) -> None:
        self._tls = tls
        self._kept = threading.local()

    def exchange(self, origin: str, method: str, path: str, headers: Mapping[str, str],
                 body: Optional[bytes], timeout: float) -> Answer:
        """Raises NotSent or Unanswered."""
        until = time.monotonic() + timeout
        kept = self._connections()
        connection, rested = kept.pop(origin, (None, 0.0))
        if connection and (time.monotonic() - rested > _IDLE_S or _is_closed(connection.sock)):
            connection.close()
            connection = None
        begun = self._begin(connection, origin, method, path, headers, body,
                            lambda: until - time.monotonic())
        try:
            data = begun.response.read()
        except BaseException as error:
            begun.close()
            if isinstance(error, (OSError, http.client.HTTPException, ValueError)):
                raise _unanswered(error) from error
            raise
        if begun.response.will_close:
            begun.connection.close()
        else:
            kept[origin] = begun.connection, time.monotonic()
        return Answer(begun.response.status, begun.response.headers, data, begun.sent)

    def open(self, origin: str, path: str, headers: Mapping[str, str], silence: float) -> Exchange:
        """Sends a GET whose answer goes on and on.  Raises NotSent or Unanswered."""
        return self._begin(None, origin, "GET", path, headers, None, lambda: silence)

    def close(self) -> None:
        """Closes what the calling thread keeps."""
        self._connections().__del__()

    def _connections(self) -> _Kept:
        if getattr(self._kept, "pid", None) != os.getpid():  # those from before a fork are the parent's
            self._kept.pid = os.getpid()
            self._kept.connections = _Kept()
        found: _Kept = self._kept.connections
        return found

    def _connect(self, origin: str, timeout: float) -> http.client.HTTPConnection:
        url = urlsplit(origin)
        timeout = max(0.001, min(timeout, _CONNECT_S))
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=timeout,
                                                     context=self._tls)
        else:
            connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise NotSent(error.strerror or type(error).__name__) from error
        return connection

    def _begin(self, connection: Optional[http.client.HTTPConnection], origin: str, method: str,
               path: str, headers: Mapping[str, str], body: Optional[bytes],
               left: Callable[[], float]) -> Exchange:
        sent = now()
        connection = connection or self._connect(origin, left())
        sock = connection.sock
        sock.settimeout(max(left(), 0.001))
        setattr(connection, "response_class", lambda _, **options: http.client.HTTPResponse(
            _Socket(sock, left), **options))  # type: ignore[arg-type]
        try:
            connection.request(method, path, body, dict(headers))
            return Exchange(connection, sock, connection.getresponse(), sent)
        except BaseException as error:  # also a KeyboardInterrupt
            connection.close()
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise _unanswered(error) from error
            raise


def _unanswered(error: Exception) -> Unanswered:
    return Unanswered(type(error).__name__, isinstance(error, socket.timeout))


def _is_closed(sock: Optional[socket.socket]) -> bool:
    """Whether a connection that rests has something to read, which can only be its end."""
    if sock is None:
        return True
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True
