"""The guard at the target of a write: it lets no holder write that another has replaced."""

import sqlite3
from typing import Any

from .errors import StaleFence

_SQLITE_TABLE = ("CREATE TABLE IF NOT EXISTS holdfast_fences "
                 "(resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID")
_SQLITE_NOTE = ("INSERT INTO holdfast_fences VALUES (?1, ?2) ON CONFLICT (resource) "
                "DO UPDATE SET fence = excluded.fence WHERE excluded.fence >= fence")


def check_fence(connection: Any, resource: str, fence: int) -> None:
    """Call it in the transaction that writes.  Raises StaleFence if a larger fence has written to the
    resource: roll back.

    `connection` is one of sqlite3, or of psycopg, psycopg2 or alike to a PostgreSQL database in which
    share/holdfast/fence.sql is installed.  A connection of sqlite3 that has no transaction begins
    one, unless it commits by itself: then the check would protect nothing, and is a ValueError.
    """
    if not 1 <= len(resource.encode()) <= 255 or fence <= 0:
        raise ValueError("a resource has 1 to 255 bytes, and a fence is above 0")
    if isinstance(connection, sqlite3.Connection):
        _check_sqlite(connection, resource, fence)
    else:
        _check_postgres(connection, resource, fence)


def _check_sqlite(connection: sqlite3.Connection, resource: str, fence: int) -> None:
    if not connection.in_transaction:
        if connection.isolation_level is None:
            raise ValueError("a fence is checked inside the transaction that it guards")
        connection.execute("BEGIN IMMEDIATE")
    connection.execute(_SQLITE_TABLE)
    if connection.execute(_SQLITE_NOTE, (resource, fence)).rowcount == 0:
        raise _stale(resource, fence)


def _check_postgres(connection: Any, resource: str, fence: int) -> None:
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    if getattr(connection, "autocommit", False) is True and status in (0, None):
        raise ValueError("a fence is checked inside the transaction that it guards")
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT holdfast_fence(%s, %s)", (resource, fence))
    except Exception as error:
        code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if code == "SF001":
            raise _stale(resource, fence) from error
        raise
    finally:
        cursor.close()


def _stale(resource: str, fence: int) -> StaleFence:
    return StaleFence("stale_fence", f"fence {fence} is stale: a larger one has written to {resource}")
