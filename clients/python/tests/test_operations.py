"""The methods of the client are the operations of openapi.yaml."""

import ast
import glob
import inspect
import os
import re
import unittest

from support import PACKAGE, SOURCE, Proxy, answer, holdfast

DOCUMENT = os.path.join(PACKAGE, "..", "..", "docs", "openapi.yaml")
ARGUMENTS = {
    "events.create": {"name": "n", "currency": "usd"}, "events.seat": {"seat": "S-A-1"},
    "events.check": {"name": "n", "currency": "usd"},
    "holds.list": {"event": "e"}, "holds.create": {"event": "e"}, "holds.change": {"fence": 1},
    "holds.confirm": {"fence": 1}, "waitlist.create": {"event": "e"},
    "owners.erase": {"owner": "ann"}, "sessions.open": {"ttl_ms": 1000},
    "locks.acquire": {"session": "s"}, "locks.release": {"session": "s", "owner": "a"},
    "locks.set_value": {"session": "s", "owner": "a", "fence": 1, "value": None},
    "server.receive_webhook": {"body": b"{}", "signature": "t=1"},
}


def operations():
    """{operationId: (method, path, whether it takes an idempotency key)}"""
    found, path, method, name = {}, "", "", ""
    with open(DOCUMENT, encoding="utf-8") as document:
        for line in document:
            if match := re.match(r"  (/\S*):$", line):
                path = match[1]
            elif match := re.match(r"    (get|post|put|patch|delete):$", line):
                method = match[1].upper()
            elif match := re.match(r"      operationId: (\w+)$", line):
                name = match[1]
                found[name] = (method, path, False)
            elif re.search(r"parameters/(i|requiredI)dempotencyKey", line):
                found[name] = (*found[name][:2], True)
            elif line.startswith("components:"):
                return found


class Operations(unittest.TestCase):
    def test_the_list_is_that_of_the_document(self):
        self.assertEqual(sorted(holdfast.OPERATIONS), sorted(operations()))

    def test_every_method_of_a_group_is_an_operation_or_builds_on_one(self):
        client = holdfast.Client("http://127.0.0.1:1")
        methods = {f"{group}.{name}" for group, value in vars(client).items() if not group.startswith("_")
                   for name, _ in inspect.getmembers(value, inspect.ismethod) if not name.startswith("_")}
        self.assertEqual(methods - set(holdfast.OPERATIONS.values()), {"events.seat_map", "locks.watch"})

    def test_each_sends_its_request_and_a_key_where_there_is_one(self):
        with Proxy(lambda request: answer(200, {})) as server, holdfast.Client(server.url) as client:
            for name, (method, path, has_key) in operations().items():
                call = holdfast.OPERATIONS[name]
                with self.subTest(name):
                    group, verb = call.split(".")
                    arguments = dict(ARGUMENTS.get(call, {}))
                    first = ["an/id"] if "{" in path else []
                    made = getattr(getattr(client, group), verb)(*first, **arguments)
                    if verb == "stream":
                        made.open().close()
                    request = server.requests[-1]
                    self.assertEqual(request.method, method)
                    self.assertRegex(request.path.split("?")[0], "^" + re.sub(
                        r"\\\{seat\\\}", "S-A-1", re.escape(path)).replace(r"\{", "{").replace(
                        r"\}", "}").replace("{event}", "an%2Fid").replace("{hold}", "an%2Fid").replace(
                        "{booking}", "an%2Fid").replace("{session}", "an%2Fid").replace(
                        "{name}", "an%2Fid").replace("{key}", "an%2Fid").replace("{entry}", "an%2Fid") + "$")
                    self.assertEqual(request.key is not None, has_key)

    def test_a_key_of_the_caller_and_unknown_fields_go_along(self):
        with Proxy(lambda request: answer(201, {})) as server, holdfast.Client(server.url, key="k") as client:
            client.holds.create(event="e", seats=["a"], idempotency_key="mine", of_tomorrow=1)
            request, = server.requests
            self.assertEqual((request.key, request.headers["authorization"]), ("mine", "Bearer k"))
            self.assertEqual(request.body, b'{"event": "e", "seats": ["a"], "of_tomorrow": 1}')

    def test_the_source_is_python_3_9(self):
        for path in [*glob.glob(f"{SOURCE}/holdfast/*.py"), os.path.join(PACKAGE, "conformance.py")]:
            with self.subTest(path), open(path, encoding="utf-8") as file:
                ast.parse(file.read(), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
