"""Notifications of the server, as https://www.standardwebhooks.com/ signs them."""

import base64
import hashlib
import hmac
import time
from typing import Any, Mapping, Sequence, Union

from .errors import HoldfastError
from .resource import Resource, parse

TOLERANCE_S = 300


def verify(body: Union[bytes, str], headers: Mapping[str, Any],
           secret: Union[str, Sequence[str]]) -> Resource:
    """The event, if it was signed with the secret, or with one of several, within five minutes.
    Raises HoldfastError `invalid_signature`.  `body` is what came, byte for byte."""
    if not isinstance(body, (bytes, str)):
        raise TypeError("the body is what was received, as bytes or str, before anything parsed it")
    raw = body.encode() if isinstance(body, str) else body
    found = {name.lower(): value for name, value in headers.items()}
    try:
        id, stamp, signatures = (str(found[f"webhook-{name}"])
                                 for name in ("id", "timestamp", "signature"))
    except KeyError as missing:
        raise _refusal(f"There is no header {missing.args[0]}.") from None
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 16
            and abs(time.time() - int(stamp)) <= TOLERANCE_S):
        raise _refusal("Its time is more than five minutes off.")
    signed = f"{id}.{stamp}.".encode() + raw
    secrets = secret if isinstance(secret, (list, tuple)) else [secret]
    expected = [base64.b64encode(hmac.new(_key(each), signed, hashlib.sha256).digest())
                for each in secrets]
    given = [each[3:].encode() for each in signatures.split(" ") if each.startswith("v1,")]
    matches = [hmac.compare_digest(a, b) for a in given for b in expected]
    if not any(matches):
        raise _refusal("No signature is right.")
    try:
        event = parse(raw)
    except ValueError:
        event = None
    if not isinstance(event, Resource):
        raise HoldfastError("invalid_request", "The body is signed, but it is no JSON object.")
    return event


def _key(secret: Any) -> bytes:
    try:
        text = secret[6:] if secret.startswith("whsec_") else secret
        key = base64.b64decode(text, validate=True)
    except (AttributeError, TypeError, ValueError):
        key = b""
    if not key:  # with an empty one, anybody could sign
        raise ValueError("a secret is whsec_ and base64")
    return key


def _refusal(detail: str) -> HoldfastError:
    return HoldfastError("invalid_signature", detail)
