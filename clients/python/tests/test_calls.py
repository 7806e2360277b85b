"""Results, errors, and what is repeated."""

import copy
import json
import os
import pickle
import socket
import ssl
import threading
import time
import unittest

from support import CUT, HANG, LONG_S, LOSE, URL, Proxy, answer, holdfast, new_event, new_name, once, problem


def posts(request):
    return request.method == "POST" and request.path == "/v1/holds"


def nobody_at(work):
    """Calls it with a URL at which nobody listens.  The port is bound, so that nobody else gets it."""
    with socket.socket() as blocker:
        blocker.bind(("127.0.0.1", 0))
        return work(f"http://127.0.0.1:{blocker.getsockname()[1]}")


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = holdfast.Client(URL, timeout=LONG_S)
        cls.event = new_event(cls.client, max_per_hold=20)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def take(self, client, seat, **options):
        return client.holds.create(event=self.event.id, seats=[seat], **options)

    # ---- results ----

    def test_results_have_attributes_and_are_dicts(self):
        hold = self.take(self.client, "S-A-1")
        self.assertEqual(hold.status, "active")
        self.assertEqual(hold["seats"], hold.seats)
        self.assertEqual(json.loads(json.dumps(hold)), hold)
        self.assertEqual(copy.deepcopy(hold).id, pickle.loads(pickle.dumps(hold)).id)
        self.assertEqual(self.client.events.get(self.event.id).sections[0].name, "S")
        with self.assertRaises(AttributeError):
            hold.nothing_of_the_kind
        self.assertIsNone(self.client.holds.release(hold.id))

    def test_texts_and_pages(self):
        self.assertIn("holdfast_", self.client.server.metrics())
        self.assertIn("operationId", self.client.server.document())
        self.assertEqual(self.client.server.readiness(reads=True).status, "ready")
        page = self.client.audit.list(event=self.event.id, limit=1)
        self.assertEqual(len(page.data), 1)
        self.assertIn("from", page.data[0])

    def test_no_secret_is_shown(self):
        client = holdfast.Client(URL, key="a-secret-key")
        hold = self.take(self.client, "S-A-2")
        with self.assertRaises(holdfast.Conflict) as caught:
            self.client.holds.confirm(hold.id, fence=hold.fence + 1)
        with self.assertRaises(holdfast.Unavailable) as unreachable:
            nobody_at(lambda url: holdfast.Client(url).holds.get(hold.id, timeout=0.1))
        for shown in (repr(client), str(hold), repr([hold]), repr(caught.exception), repr(unreachable.exception),
                      str(caught.exception.extra)):
            self.assertNotIn("a-secret-key", shown)
            self.assertNotIn(hold.id, shown)

    def test_a_url_is_an_address_and_nothing_else(self):
        for url in ("ftp://h", "h:80", "http://user:word@h", "http://h/path", ["http://a", "https://b"], [], None, ""):
            with self.subTest(url), self.assertRaises(ValueError):
                holdfast.Client(url)

    def test_what_cannot_be_sent_is_refused_at_once_and_not_shown(self):
        for key in ("secret\n", "a secret", "секрет", ""):
            with self.subTest(key), self.assertRaisesRegex(ValueError, "^an access key is") as caught:
                holdfast.Client(URL, key=key)
            self.assertNotIn("secret", str(caught.exception))
        for key in ("", "a\nb", "ключ-ключ-ключ-ключ"):
            with self.subTest(key), self.assertRaisesRegex(ValueError, "^an idempotency key is"):
                self.take(self.client, "S-A-5", idempotency_key=key)
        for id in ("", ".", "..", None, 7):
            for call in (self.client.holds.release, self.client.locks.get, self.client.lock):
                with self.subTest(id), self.assertRaisesRegex((TypeError, ValueError), "(an id or a name is|needs a name|not iterable)"):
                    call(id)

    # ---- errors ----

    def test_errors_have_classes_by_status(self):
        cases = [(400, "invalid_request", holdfast.HoldfastError), (401, "unauthorized", holdfast.HoldfastError),
                 (404, "no_such_event", holdfast.NotFound), (409, "seat_taken", holdfast.Conflict),
                 (422, "idempotency_mismatch", holdfast.Conflict), (410, "hold_expired", holdfast.Gone),
                 (429, "too_many_holds", holdfast.Unavailable), (502, "unavailable", holdfast.Unavailable),
                 (503, "draining", holdfast.Unavailable), (504, "unavailable", holdfast.Unavailable),
                 (503, "outcome_unknown", holdfast.OutcomeUnknown), (500, "internal", holdfast.HoldfastError)]
        for status, code, kind in cases:
            with self.subTest(code), Proxy(lambda _: problem(status, code, retry_after=777, seats=["x"])) as server:
                with self.assertRaises(holdfast.HoldfastError) as caught:
                    holdfast.Client(server.url).events.list(timeout=LONG_S)
                error = caught.exception
                self.assertIs(type(error), kind)
                self.assertEqual((error.code, error.status, error.detail), (code, status, "It is so."))
                self.assertEqual((error.retry_after, error.extra.seats), (777, ["x"]))
                self.assertEqual(pickle.loads(pickle.dumps(error)).extra, error.extra)
                self.assertEqual(len(server.requests), 1)  # a verdict, or later than the deadline

    def test_an_answer_of_something_else_is_an_error_too(self):
        with Proxy(lambda _: b"HTTP/1.1 404 No\r\nConnection: close\r\n\r\n<h1>No</h1>") as server:
            with self.assertRaises(holdfast.NotFound):
                holdfast.Client(server.url).events.list()
        with Proxy(lambda _: b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<h1>Yes</h1>") as server:
            with self.assertRaisesRegex(holdfast.HoldfastError, "invalid_answer"):
                holdfast.Client(server.url).events.list()

    def test_the_real_server_says_what_is_taken(self):
        self.take(self.client, "S-A-3")
        with self.assertRaises(holdfast.Conflict) as caught:
            self.client.holds.create(event=self.event.id, seats=["S-A-3", "S-A-4"])
        self.assertEqual((caught.exception.code, caught.exception.extra.seats), ("seat_taken", ["S-A-3"]))

    # ---- repeats ----

    def test_a_write_is_repeated_with_its_key_and_done_once(self):
        before = self.client.events.get(self.event.id).held
        faults = [CUT, LOSE, problem(503, "overloaded", retry_after=0), problem(429, "too_many_requests", retry_after=0),
                  problem(503, "outcome_unknown", retry_after=0), b"HTTP/1.1 502 Bad\r\n\r\n", LOSE,
                  problem(409, "idempotency_in_flight", retry_after=0)]
        for seat, some in (("S-B-1", faults[:4]), ("S-B-2", faults[4:])):
            with Proxy(once(*some, of=posts)) as proxy, holdfast.Client(proxy.url, timeout=LONG_S) as client:
                self.assertEqual(self.take(client, seat).status, "active")
                self.assertEqual(len(proxy.requests), len(some) + 1)
                self.assertEqual(len({request.key for request in proxy.requests}), 1)
        self.assertEqual(self.client.events.get(self.event.id).held, before + 2)

    def test_a_verdict_is_not_repeated(self):
        with Proxy(once(problem(409, "sold_out", available=0))) as proxy, holdfast.Client(proxy.url) as client:
            with self.assertRaises(holdfast.Conflict):
                self.take(client, "S-B-3")
            self.assertEqual(len(proxy.requests), 1)

    def test_the_server_says_when_to_come_back(self):
        plan = once(problem(503, "draining", retry_after=1), problem(503, "no_master", retry_after=9, retry_after_ms=700))
        with Proxy(plan) as proxy, holdfast.Client(proxy.url, timeout=LONG_S) as client:
            began = time.monotonic()
            client.events.list()
            self.assertGreaterEqual(time.monotonic() - began, 1.7)

    def test_it_is_unavailable_if_nothing_was_done(self):
        with self.assertRaises(holdfast.Unavailable) as caught:
            nobody_at(lambda url: self.take(holdfast.Client(url), "S-B-3", timeout=0.3))
        self.assertEqual((caught.exception.code, caught.exception.status), ("unreachable", None))
        with Proxy(lambda _: problem(503, "ledger_unavailable", retry_after=777)) as proxy:
            with self.assertRaises(holdfast.Unavailable) as caught:
                self.take(holdfast.Client(proxy.url), "S-B-3", timeout=LONG_S)
        self.assertEqual((caught.exception.code, caught.exception.status), ("ledger_unavailable", 503))

    def test_after_the_deadline_a_write_is_open_and_a_read_is_not(self):
        key = new_name("key")
        for fault in (HANG, LOSE):
            with self.subTest(fault), Proxy(lambda _: fault) as proxy, holdfast.Client(proxy.url, timeout=0.5) as client:
                with self.assertRaises(holdfast.OutcomeUnknown):
                    self.take(client, "S-B-4", idempotency_key=key)
                with self.assertRaises(holdfast.Unavailable) as caught:
                    client.events.list()
                self.assertIn(caught.exception.code, ("timeout", "unreachable"))
        self.assertEqual(self.take(self.client, "S-B-4", idempotency_key=key).status, "active")

    def test_a_deadline_is_of_all_that_a_call_reads(self):
        drip = Proxy(lambda _: None)
        drip.forward = lambda link, raw, does: trickle(link)
        with drip:
            began = time.monotonic()
            with self.assertRaises(holdfast.Unavailable):
                holdfast.Client(drip.url).events.list(timeout=1)
            self.assertGreaterEqual(time.monotonic() - began, 0.9)

    # ---- several servers ----

    def test_the_next_server_is_asked_and_the_one_that_answered_stays(self):
        with Proxy(lambda _: problem(503, "draining", retry_after=60)) as draining, Proxy() as good:
            client = nobody_at(lambda url: holdfast.Client([url, draining.url, good.url], timeout=LONG_S))
            self.take(client, "S-B-5")
            self.take(client, "S-B-6")
            self.assertEqual((len(draining.requests), len(good.requests)), (1, 2))
            self.assertEqual(draining.requests[0].key, good.requests[0].key)

    def test_after_a_round_there_is_a_pause_and_another_round(self):
        with Proxy(once(CUT, CUT)) as one, Proxy(once(CUT, CUT)) as two:
            client = holdfast.Client([one.url, two.url], timeout=LONG_S)
            self.take(client, "S-B-7")
            self.assertEqual((len(one.requests), len(two.requests)), (3, 2))

    def test_a_redirection_is_followed_to_servers_of_the_cell_only(self):
        with Proxy() as master, Proxy() as stranger:
            cell = answer(200, {"servers": [{"url": master.url}], "master": {"url": master.url}})
            for to in (master, stranger):
                def plan(request):
                    if request.path == "/v1/cell":
                        return cell
                    return answer(307, Location=to.url + request.path)
                with Proxy(plan) as standby, holdfast.Client(standby.url, key="secret") as client:
                    if to is master:
                        master.plan = lambda request: answer(201, {"id": "ses_1"})
                        self.assertEqual(client.sessions.open(ttl_ms=1000).id, "ses_1")
                        self.assertEqual(master.requests[-1].headers["authorization"], "Bearer secret")
                        self.assertEqual(json.loads(master.requests[-1].body), {"ttl_ms": 1000})
                    else:
                        with self.assertRaises(holdfast.HoldfastError):
                            client.sessions.open(ttl_ms=1000, timeout=1)
                        self.assertEqual(stranger.requests, [])

    def test_redirections_end(self):
        with Proxy() as proxy:
            proxy.plan = lambda request: answer(307, Location=proxy.url + request.path)
            with self.assertRaises(holdfast.Unavailable):
                holdfast.Client(proxy.url).locks.get("x", timeout=1)

    # ---- connections ----

    @unittest.skipUnless("HOLDFAST_TLS_URL" in os.environ, "there is no server with HTTPS")
    def test_https_is_spoken_with_servers_that_are_trusted(self):
        url, trusted = os.environ["HOLDFAST_TLS_URL"], ssl.create_default_context(cafile=os.environ["HOLDFAST_TLS_CA"])
        with holdfast.Client(url, ssl_context=trusted, timeout=LONG_S) as client:
            event = new_event(client)
            with client.events.stream(event.id).open() as stream:
                client.holds.create(event=event.id, seats=["S-A-1"])
                self.assertEqual(next(stream).changes, [["S-A-1", "h"]])
        with self.assertRaises(holdfast.Unavailable):
            holdfast.Client(url, timeout=0.5).events.list()

    def test_connections_are_kept_by_each_thread(self):
        client = holdfast.Client(URL, timeout=LONG_S)
        failures = []

        def work():
            try:
                for _ in range(5):
                    client.events.get(self.event.id)
            except holdfast.HoldfastError as error:
                failures.append(error)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


def trickle(link):
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        link.sendall(b" ")
        time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
