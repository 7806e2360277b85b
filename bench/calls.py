"""The calls of calls.c in Python, through the client, or by hand with http.client:

  python3 bench/calls.py URL client|hand read|refused EVENT SECONDS THREADS
"""

import http.client
import json
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python/src"))

import holdfast  # noqa: E402

url, by, kind, event, seconds, at_once = sys.argv[1:]
client = holdfast.Client(url)
WANTED = {"event": event, "seats": ["S1-A-1"]}


def read_by_client():
    client.events.get(event)


def refused_by_client():
    try:
        client.holds.create(**WANTED)
    except holdfast.Conflict:
        return
    raise AssertionError("it was granted")


def by_hand():
    """Returns a function that makes the call, on a connection of its own."""
    connection = http.client.HTTPConnection(url.split("//")[1])

    def call():
        if kind == "read":
            connection.request("GET", f"/v1/events/{event}")
        else:
            connection.request("POST", "/v1/holds", json.dumps(WANTED), {"Content-Type": "application/json"})
        response = connection.getresponse()
        json.loads(response.read())
        assert response.status == {"read": 200, "refused": 409}[kind]
    return call


def load(duration):
    """Makes calls for so long; returns their number."""
    end = time.monotonic() + duration
    counts = []

    def caller():
        call = by_hand() if by == "hand" else {"read": read_by_client, "refused": refused_by_client}[kind]
        n = 0
        while time.monotonic() < end:
            call()
            n += 1
        counts.append(n)

    threads = [threading.Thread(target=caller) for _ in range(int(at_once))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(counts) < len(threads):
        sys.exit(1)  # an answer was not the expected one, as stderr says
    return sum(counts)


begun, cpu = time.monotonic(), time.process_time()
n = load(float(seconds))
print(json.dumps({"requests": n, "per_second": n / (time.monotonic() - begun),
                  "cpu_us": 1e6 * (time.process_time() - cpu) / n}))
