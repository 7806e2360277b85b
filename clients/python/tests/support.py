"""What the tests share: a proxy that makes faults, events, and programs in processes of their own.

HOLDFAST_URL is a server without keys; tests/clients/python.test.mjs starts it and runs the tests.
Their claims do not depend on how fast the machine is: LONG_S is never waited for unless a test fails.
"""

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import uuid
from urllib.parse import urlsplit

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(PACKAGE, "src")
sys.path.insert(0, SOURCE)

import holdfast  # noqa: E402

URL = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8080")
LONG_S = 120


def new_event(client, **fields):
    return client.events.create(**{
        "name": "Gala", "currency": "usd", "areas": [{"name": "Floor", "price": 100, "capacity": 50}],
        "sections": [{"name": "S", "price": 1000, "rows": 2, "seats_per_row": 10}], **fields})


def new_name(text="lock"):
    return f"{text}-{uuid.uuid4()}"


class Request:
    def __init__(self, lines, body):
        self.method, self.path, _ = lines[0].split(" ")
        self.headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines[1:])}
        self.body = body

    @property
    def key(self):
        return self.headers.get("idempotency-key")


def answer(status, value=None, **headers):
    """The bytes of an answer."""
    body = b"" if value is None else json.dumps(value).encode()
    head = {"Content-Type": "application/json", "Content-Length": len(body), "Connection": "close", **{
        name.replace("_", "-"): text for name, text in headers.items()}}
    lines = [f"HTTP/1.1 {status} Any", *(f"{name}: {text}" for name, text in head.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def problem(status, code, **more):
    headers = {"Retry_After": more.pop("retry_after")} if "retry_after" in more else {}
    return answer(status, {"type": f"/problems/{code}", "title": code, "status": status, "code": code,
                           "detail": "It is so.", "request_id": "req_0", **more}, **headers)


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

CUT = "cut the connection before the request is passed on"
LOSE = "pass the request on, and cut the connection before the answer"
HANG = "answer nothing"


class Proxy:
    """A proxy to URL that closes each connection after its answer.  `plan(request)` says what becomes of
    a request: None to pass it on, CUT, LOSE, HANG, or the bytes of an answer."""

    def __init__(self, plan=lambda request: None):
        self.plan = plan
        self.requests = []
        self.links = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shut(self.listener)
        self.cut()

    def cut(self):
        """Cuts the connections that there are."""
        links, self.links = self.links, []
        for link in links:
            shut(link)

    def accept(self):
        while True:
            try:
                link = self.listener.accept()[0]
            except OSError:
                return
            self.links.append(link)
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link):
        try:
            request, raw = read_request(link)
            self.requests.append(request)
            does = self.plan(request)
            if does == HANG:
                link.recv(1)
            elif isinstance(does, bytes):
                link.sendall(does)
                if does.startswith(STREAM):  # it goes on
                    link.recv(1)
            elif does != CUT:
                self.forward(link, raw, does)
        except (OSError, ValueError):
            pass
        finally:
            shut(link)

    @staticmethod
    def forward(link, raw, does):
        to = urlsplit(URL)
        with socket.create_connection((to.hostname, to.port)) as server:
            server.sendall(raw)
            if does != LOSE:  # a client that goes away cuts the connection to the server
                threading.Thread(target=lambda: (hear_end(link), shut(server)), daemon=True).start()
            for data in iter(lambda: server.recv(65536), b""):
                if does != LOSE:
                    link.sendall(data)


def hear_end(link):
    try:
        link.recv(1)
    except OSError:
        pass


def read_request(link):
    data = b""
    while b"\r\n\r\n" not in data:
        more = link.recv(65536)
        if not more:
            raise ValueError("no request")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    request = Request(lines, b"")
    while len(body) < int(request.headers.get("content-length", 0)):
        body += link.recv(65536)
    request.body = body
    return request, "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def shut(link):
    try:
        link.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    link.close()


def once(*actions, of=lambda request: True):
    """A plan: these become of the first requests, and nothing of the others."""
    left = list(actions)
    mutex = threading.Lock()

    def plan(request):
        with mutex:
            return left.pop(0) if left and of(request) else None
    return plan


class Program:
    """A Python program in a process of its own, which talks in lines."""

    def __init__(self, text, *args):
        self.run = subprocess.Popen([sys.executable, "-u", "-c", textwrap.dedent(text), *args],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "PYTHONPATH": SOURCE})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.kill()
        self.run.wait()
        self.run.stdin.close()
        self.run.stdout.close()

    def read(self):
        return self.run.stdout.readline().strip()
