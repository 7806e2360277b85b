"""What calls raise: one class for each family of codes."""

from email.message import Message
from typing import Any, Dict, Mapping, Optional, Type

from .resource import Resource, parse

_OWN = ("type", "title", "status", "code", "detail")  # members of a problem that are no extras


class HoldfastError(Exception):
    """A call failed.

    code         what happened, for programs: the API's code, or `unreachable` or `timeout`
    status       of the answer; None: there was none
    detail       what happened, for people
    retry_after  when to try again, in seconds; None: the answer did not say
    extra        the other members of the answer, such as `seats`
    """

    def __init__(self, code: str, detail: str = "", *, status: Optional[int] = None,
                 retry_after: Optional[float] = None,
                 extra: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(code, detail)
        self.code = code
        self.status = status
        self.detail = detail
        self.retry_after = retry_after
        self.extra = Resource(extra or {})
        self.may_be_ours = False  # an earlier attempt of the call may have made it so
        self.covers_retries = True  # it tells what became of earlier attempts, too

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


class Conflict(HoldfastError):
    """409, 422: the state does not allow it.  Nothing was done."""


class Gone(HoldfastError):
    """410: a hold, a session or a lock has ended."""


class LockLost(Gone):
    """The lock is not held any more: stop using what it protects."""


class NotFound(HoldfastError):
    """404."""


class Unavailable(HoldfastError):
    """429, 502, 503, 504, or no answer, until the deadline.  Nothing was done."""


class OutcomeUnknown(HoldfastError):
    """It may have been done.  Repeat it with the same idempotency key, or look."""


class StaleFence(HoldfastError):
    """A larger fence has written to the resource: the lock has passed to another holder."""


_CLASSES: Dict[int, Type[HoldfastError]] = {
    307: Unavailable, 404: NotFound, 409: Conflict, 410: Gone, 422: Conflict,
    429: Unavailable, 502: Unavailable, 503: Unavailable, 504: Unavailable}


def of_answer(status: int, headers: Message, body: bytes) -> HoldfastError:
    """The error that an answer is, whoever wrote it: the server, or a proxy before it."""
    try:
        problem = parse(body)
    except ValueError:
        problem = None
    is_ours = isinstance(problem, Resource) and isinstance(problem.get("code"), str)
    if not is_ours:
        problem = Resource(code="unavailable" if status >= 502 else f"http_{status}",
                           detail="The answer is not one of Holdfast.")
    seconds = str(headers.get("Retry-After", ""))
    retry_after: Optional[float] = int(seconds) if seconds.isdecimal() else None
    exact = problem.get("retry_after_ms")
    if retry_after is None and isinstance(exact, int) and exact >= 0:
        retry_after = exact / 1000
    kind = _CLASSES.get(status, HoldfastError)
    if problem.code == "outcome_unknown":
        kind = OutcomeUnknown
    extra = {name: value for name, value in problem.items() if name not in _OWN}
    error = kind(problem.code, str(problem.get("detail", "")), status=status,
                 retry_after=retry_after, extra=extra)
    error.covers_retries = is_ours and status < 500 and status not in (401, 403)
    return error
