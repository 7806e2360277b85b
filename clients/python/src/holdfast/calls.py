"""Calls: which server is asked, what is repeated, and for how long.

A call that writes has one idempotency key, made here unless the caller has one, and keeps it over
all repeats.  Repeated are connection failures, 429, 502, 503, 504, `outcome_unknown` and
`idempotency_in_flight`, until the deadline; never a verdict.  With several servers the next one is
asked at once; after all were asked, there is a pause: the server's Retry-After, or one that grows.
"""

import json
import random
import ssl
import threading
import time
import uuid
import weakref
from typing import Any, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlencode, urljoin, urlsplit

from . import errors
from .errors import HoldfastError, OutcomeUnknown, Unavailable
from .resource import parse
from .transport import Answer, Exchange, NotSent, Transport, Unanswered

_RETRIED = (429, 502, 503, 504)
_HOPS_MAX = 3
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.05, 2.0
_ATTEMPT_MIN_S = 5.0  # a server that is silent for longer, and a third of the deadline, is asked again


def pause_s(n: int) -> float:
    """The pause before the n-th repeat, from 0: 50 ms, doubling to 2 s, half of it random."""
    return min(_PAUSE_MIN_S * float(2 ** min(n, 20)), _PAUSE_MAX_S) * random.uniform(0.5, 1.5)


def origin_of(url: str) -> str:
    """The scheme, host and port of a URL, normalised."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL of a server is http://HOST[:PORT] or https://HOST[:PORT]")
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("the URL of a server has no user, path or query")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"


class _Servers:
    """The configured servers and those that a cell has named, and which of them answered last."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.origins: List[str] = [origin_of(url) for url in urls]
        if not self.origins:
            raise ValueError("a client needs the URL of a server")
        if len({urlsplit(origin).scheme for origin in self.origins}) > 1:
            raise ValueError("all servers have the same scheme")
        self.named: List[str] = []
        self.last = {True: self.origins[0], False: self.origins[0]}  # for locks, and for all else

    def after(self, origin: str) -> str:
        """The configured server to ask after this one, which did not answer."""
        if origin not in self.origins:
            return self.origins[0]
        return self.origins[(self.origins.index(origin) + 1) % len(self.origins)]


def _is_word(text: str) -> bool:
    return text.isascii() and text.isprintable() and text != "" and " " not in text


def _is_for_locks(path: str) -> bool:
    return path.startswith(("/v1/locks", "/v1/sessions", "/v1/cell"))


class Caller:
    """Makes the calls of a client.  Any thread may use it."""

    def __init__(self, urls: Union[str, Sequence[str]], key: Optional[str], timeout: float,
                 tls: Optional[ssl.SSLContext]) -> None:
        self.servers = _Servers(list(urls) if isinstance(urls, (list, tuple)) else [str(urls)])
        self.timeout = timeout
        self.transport = Transport(tls)
        self.streams: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()
        if key is not None and not _is_word(key):
            raise ValueError("an access key is visible ASCII, without a line's end")
        self._authorization = {"Authorization": f"Bearer {key}"} if key else {}

    def json(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of an answer; None if it has no body."""
        answer = self.call(method, path, **options)
        try:
            return parse(answer.body) if answer.body else None
        except ValueError:
            kind = OutcomeUnknown if answer.is_repeat else HoldfastError
            raise kind("invalid_answer", "The answer is not one of Holdfast.",
                       status=answer.status) from None

    def call(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None,
             body: Union[None, bytes, Mapping[str, Any]] = None,
             headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
             wait: float = 0, attempt: Optional[float] = None, idempotency_key: Optional[str] = None,
             has_key: bool = False) -> Answer:
        """An answer below 300; anything else raises HoldfastError.

        wait      for how long the server may wait before it answers
        attempt   for how long one server is waited for beyond that
        has_key   the operation takes an idempotency key
        """
        timeout = self.timeout if timeout is None else timeout
        if has_key:
            key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
            if not _is_word(key.replace(" ", "_")):
                raise ValueError("an idempotency key is printable ASCII, and not empty")
            headers = {**(headers or {}), "Idempotency-Key": key}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode()
        call = _Call(self, method, target(path, query), headers or {}, body)
        call.until = time.monotonic() + timeout + wait
        call.attempt_s = wait + (attempt or max(_ATTEMPT_MIN_S, timeout / 3))
        return call.run()

    def open(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str],
             silence: float) -> Exchange:
        """Opens a stream at the server that answered last, once.  Raises HoldfastError.  The status
        is 204 if there will be nothing more to tell."""
        locks = _is_for_locks(path)
        origin = self.servers.last[locks]
        try:
            for hop in range(_HOPS_MAX + 1):
                found = self.transport.open(
                    origin, target(path, query),
                    {**self._authorization, "Accept": "text/event-stream", **headers}, silence)
                if found.response.status in (200, 204):
                    self.servers.last[locks] = origin
                    return found
                answer = Answer(found.response.status, found.response.headers,
                                found.response.read(), found.sent)
                found.close()
                if answer.status != 307 or hop == _HOPS_MAX:
                    raise errors.of_answer(answer.status, answer.headers, answer.body)
                origin = self.redirected(origin, answer)
            raise AssertionError
        except (NotSent, Unanswered, OSError) as error:
            self.servers.last[locks] = self.servers.after(origin)
            raise Unavailable("unreachable", "The server did not answer.") from error
        except Unavailable:
            self.servers.last[locks] = self.servers.after(origin)
            raise

    def send(self, origin: str, method: str, path: str, headers: Mapping[str, str],
             body: Optional[bytes], timeout: float) -> Answer:
        content = {"Content-Type": "application/json"} if body is not None else {}
        return self.transport.exchange(origin, method, path, {
            **self._authorization, "Accept": "application/json", **content, **headers}, body, timeout)

    def redirected(self, origin: str, answer: Answer) -> str:
        """The server that a 307 leads to.  The key goes along, so it has to be a known one: one that
        the caller named, or that the cell itself names."""
        try:
            to = urljoin(origin, answer.headers.get("Location", ""))
            there = origin_of(f"{urlsplit(to).scheme}://{urlsplit(to).netloc}")
        except ValueError:
            there = ""
        servers = self.servers
        if there and there not in servers.origins + servers.named:
            try:
                cell = parse(self.send(origin, "GET", "/v1/cell", {}, None, _ATTEMPT_MIN_S).body)
                found = [origin_of(url) for url in
                         [each["url"] for each in cell["servers"]] + [(cell["master"] or cell)["url"]]]
                scheme = urlsplit(servers.origins[0]).scheme
                servers.named = [each for each in found if urlsplit(each).scheme == scheme]
            except (NotSent, Unanswered, ValueError, KeyError, TypeError):
                pass
        if there not in servers.origins + servers.named:
            raise Unavailable("unreachable", "The server leads to another one that is not known.",
                              status=answer.status)
        return there


class _Call:
    """A call under way."""

    until: float
    attempt_s: float

    def __init__(self, caller: Caller, method: str, path: str, headers: Mapping[str, str],
                 body: Optional[bytes]) -> None:
        self._caller = caller
        self._request = method, path, headers, body
        self._is_write = method != "GET"
        self._may_be_done = False  # an attempt was not answered, or its answer did not say
        self._locks = _is_for_locks(path)

    def run(self) -> Answer:
        servers = self._caller.servers
        origin = servers.last[self._locks]
        hops = tries = rounds = 0
        pauses: List[float] = []  # what the servers of this round have asked for
        error: HoldfastError = Unavailable("timeout", "The deadline has passed.")
        while True:
            timeout = min(self.until - time.monotonic(), self.attempt_s)
            if timeout <= 0 and tries > 0:
                raise self._failure(error)
            try:
                answer = self._caller.send(origin, *self._request, timeout)
                if answer.status == 307 and hops < _HOPS_MAX:
                    hops += 1
                    origin = self._caller.redirected(origin, answer)
                    continue
                if answer.status < 300:
                    servers.last[self._locks] = origin
                    answer.is_repeat = self._may_be_done
                    return answer
                error = errors.of_answer(answer.status, answer.headers, answer.body)
                if not self._is_to_be_repeated(error):
                    servers.last[self._locks] = origin
                    error.may_be_ours = self._may_be_done
                    raise error if error.covers_retries else self._failure(error)
            except NotSent as why:
                error = Unavailable("unreachable", f"No server could be reached: {why}.")
            except Unanswered as silence:
                self._may_be_done |= self._is_write
                error = Unavailable("timeout" if silence.timed_out else "unreachable",
                                    "The server did not answer.")
            except Unavailable as refused:
                error = refused
            hops = 0
            tries += 1
            pauses.append(_pause_asked(error))
            pause = 0.0
            if error.status != 429:
                origin = servers.after(origin)
            if error.status == 429 or tries % len(servers.origins) == 0:
                pause = min(pauses) * random.uniform(1, 1.1) or pause_s(rounds)
                rounds += 1
                pauses = []
            if time.monotonic() + pause >= self.until:
                raise self._failure(error)
            time.sleep(pause)

    def _is_to_be_repeated(self, error: HoldfastError) -> bool:
        is_open = error.code in ("outcome_unknown", "idempotency_in_flight")
        is_lost = error.status in (502, 504) and error.code == "unavailable"  # by a gateway
        self._may_be_done |= self._is_write and (is_open or is_lost)
        return is_open or error.status in _RETRIED or error.status == 307

    def _failure(self, error: HoldfastError) -> HoldfastError:
        if not self._may_be_done or isinstance(error, OutcomeUnknown):
            return error
        return OutcomeUnknown("outcome_unknown", "The deadline passed before an answer said whether "
                              "it was done.", status=error.status, retry_after=error.retry_after,
                              extra=error.extra)


def _pause_asked(error: HoldfastError) -> float:
    exact = error.extra.get("retry_after_ms")
    return exact / 1000 if isinstance(exact, int) and exact >= 0 else error.retry_after or 0.0


def segment(name: str) -> str:
    """A part of a path."""
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise ValueError('an id or a name is a str that is not empty, "." or ".."')
    return quote(name, safe="")


def target(path: str, query: Optional[Mapping[str, Any]] = None) -> str:
    """A path with the parameters that are not None."""
    given = {name: str(value).lower() if isinstance(value, bool) else value
             for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
