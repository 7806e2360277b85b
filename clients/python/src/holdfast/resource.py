"""Objects of the API, as Python sees them."""

import json
from typing import Any, Dict


class Resource(Dict[str, Any]):
    """A JSON object of the API: a dict whose members are attributes, too.

    ``hold.id`` and ``hold["id"]`` are the same.  A member whose name is a word of Python or a
    method of dict has the brackets alone: ``row["from"]``.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{self!r} has no {name!r}") from None

    def __repr__(self) -> str:
        # Without ids: the id of a hold, a booking or a session is a secret.
        words = [str(self[name]) for name in ("object", "status") if name in self]
        return f"<{' '.join(words) or 'resource'}>"


def parse(text: bytes) -> Any:
    """Parses JSON; every object in it is a Resource.  Raises ValueError."""
    return json.loads(text, object_hook=Resource)
