#!/usr/bin/env python3
"""The driver of the conformance scenarios: requests on stdin, answers on stdout, one JSON object a line."""

import json
import os
import queue
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"))
import holdfast  # noqa: E402

try:
    import psycopg as postgres
except ImportError:
    try:
        import psycopg2 as postgres
    except ImportError:
        postgres = None

LACKS = {"block": "no event loop: a thread that is blocked blocks no other"}
if not postgres:
    LACKS["check_fence postgres"] = "neither psycopg nor psycopg2 is installed"

things = {}  # what requests have named: clients, streams, maps, locks
CLASSES = ("Conflict", "Gone", "LockLost", "NotFound", "Unavailable", "OutcomeUnknown", "StaleFence")


class Usage(Exception):
    pass


class Reader:
    """A stream that is read into a queue, so that `next` has a timeout."""

    def __init__(self, stream):
        self.stream = stream
        self.changes = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for change in self.stream:
                self.changes.put(change)
        except holdfast.HoldfastError as error:
            self.changes.put(error)

    def next(self, timeout):
        try:
            found = self.changes.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        self.stream.close()


def the(kind, name):
    try:
        return things[kind, name]
    except KeyError:
        raise Usage(f"there is no {kind} {name}") from None


def call(request):
    client = the("client", request["client"])
    if request["call"] not in holdfast.OPERATIONS.values() or request["call"].endswith(".stream"):
        raise Usage(f"there is no call {request['call']}")
    group, method = request["call"].split(".")
    args = dict(request.get("args") or {})
    first = [args.pop("id")] if "id" in args else []
    return getattr(getattr(client, group), method)(*first, **args, **(request.get("options") or {}))


def lock(request):
    options = dict(request.get("options") or {})
    agent = options.pop("agent", None)
    lock = the("client", request["client"]).lock(request["locks"], **options)
    if agent is None:
        lock.acquire()
    else:  # a thread of its own, whose locks the service knows as those of one agent
        things.setdefault(("agent", agent), ThreadPoolExecutor(1)).submit(lock.acquire).result()
    things["lock", request["name"]] = lock
    return {"fence": lock.fence, "fences": lock.fences, "slot": lock.slot}


def unlock(request):
    lock = the("lock", request["name"])
    del things["lock", request["name"]]
    lock.release()


def lock_state(request):
    lock = the("lock", request["name"])
    held = lock.held
    return {"held": held, "lost": lock.lost.is_set()}


def fork(request):
    """A child looks at the lock, and tries to give it back."""
    lock = the("lock", request["name"])
    pid = os.fork()
    if pid == 0:
        told = 0
        try:
            told = 1 if lock.held else 0
            lock.release()
            told += 2
        finally:
            os._exit(told)
    told = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"held": bool(told & 1), "released": bool(told & 2)}


def check_fence(request):
    """Writes to what a lock protects: nothing but its fence."""
    kind, _, path = request["database"].partition(":")
    db = sqlite3.connect(path, timeout=60) if kind == "sqlite" else postgres.connect(request["database"])
    try:
        holdfast.check_fence(db, request["resource"], request["fence"])
        db.commit()
    finally:
        db.close()


def client(request):
    things["client", request["name"]] = holdfast.Client(request["urls"], **(request.get("options") or {}))


def stream(request):
    client = the("client", request["client"])
    made = (client.locks.stream(request["lock"]) if request["op"] == "watch"
            else client.waitlist.stream(request["entry"]) if request["op"] == "follow"
            else client.events.stream(request["event"], after=request.get("after")))
    things["stream", request["name"]] = Reader(made.open())


def seat_map(request):
    things["map", request["name"]] = the("client", request["client"]).events.seat_map(request["event"])


def map_state(request):
    state = the("map", request["name"]).snapshot()
    return {"seq": state.seq, "seats": state.seats, "areas": state.areas}


def close(request):
    kind = "stream" if ("stream", request["name"]) in things else "map"
    the(kind, request["name"]).close()
    del things[kind, request["name"]]


OPS = {
    "lacks": lambda r: LACKS, "pid": lambda r: os.getpid(), "fork": fork, "check_fence": check_fence,
    "client": client, "call": call, "stream": stream, "watch": stream, "follow": stream, "map": seat_map,
    "map_state": map_state, "close": close, "lock": lock, "lock_state": lock_state, "unlock": unlock,
    "next": lambda r: the("stream", r["name"]).next(r.get("timeout", 10)),
    "lock_await_lost": lambda r: {"lost": the("lock", r["name"]).lost.wait(r.get("timeout", 10))},
    "webhook": lambda r: holdfast.webhooks.verify(r["body"], r["headers"], r["secret"]),
    "close_client": lambda r: the("client", r["name"]).close(),
}


def answer(request):
    try:
        if request.get("op") not in OPS:
            raise Usage(f"there is no op {request.get('op')}")
        return {"value": OPS[request["op"]](request)}
    except holdfast.HoldfastError as error:
        kind = type(error).__name__
        return {"error": {"class": kind if kind in CLASSES else "HoldfastError", "code": error.code,
                          "status": error.status, "detail": error.detail,
                          "retry_after": error.retry_after, "extra": error.extra}}
    except Exception as error:  # a request that makes no sense
        return {"error": {"class": "Usage", "code": "usage", "status": None, "detail": str(error),
                          "retry_after": None, "extra": {}}}


def serve(request, out):
    line = json.dumps({"id": request.get("id"), **answer(request)}) + "\n"
    with out:
        sys.stdout.write(line)
        sys.stdout.flush()


def main():
    out = threading.Lock()
    for line in sys.stdin:
        threading.Thread(target=serve, args=(json.loads(line), out), daemon=True).start()


if __name__ == "__main__":
    main()
