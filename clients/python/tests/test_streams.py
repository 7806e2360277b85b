"""Changes as they happen, and the map that they keep up to date."""

import json
import threading
import time
import unittest
import unittest.mock

from support import LONG_S, STREAM, URL, Proxy, answer, holdfast, new_event, problem


def message(event, seq, has_id=True, **data):
    head = f"id: {seq}\n" if has_id else ""
    return f"{head}event: {event}\ndata: {json.dumps({'seq': seq, **data})}\n\n".encode()


def seats(seq, *changes):
    return message("seats", seq, changes=changes, areas={})


class Scripted(Proxy):
    """A server whose stream has one part after the other; the connection is cut after each but the last."""

    def __init__(self, *parts, **maps):
        self.parts = list(parts)
        self.maps = maps.get("maps", [])
        super().__init__(self.next)

    def next(self, request):
        if "/stream" not in request.path:
            found = self.maps.pop(0)
            return found if isinstance(found, bytes) else answer(200, found)
        if isinstance(self.parts[0], int):
            return problem(self.parts.pop(0), "any", retry_after=0)
        if len(self.parts) == 1:
            return STREAM + b"retry: 1\n\n" + self.parts[0]
        return STREAM.replace(b"event-stream", b"event-stream\r\nX-End: 1") + b"retry: 1\n\n" + self.parts.pop(0)

    def asked(self):
        return [request.headers.get("last-event-id") for request in self.requests if "/stream" in request.path]


class Streams(unittest.TestCase):
    def setUp(self):
        self.client = holdfast.Client(URL, timeout=LONG_S)
        self.addCleanup(self.client.close)

    def follow(self, server, after=10):
        self.addCleanup(server.__exit__)
        stream = holdfast.Client(server.url, timeout=LONG_S).events.stream("evt_1", after=after)
        self.addCleanup(stream.close)
        return stream

    def test_changes_come_in_order_from_the_real_server(self):
        event = new_event(self.client)
        first = self.client.events.seats(event.id).seq
        with self.client.events.stream(event.id).open() as live:
            hold = self.client.holds.create(event=event.id, seats=["S-A-1"], areas={"Floor": 3})
            change = next(live)
            self.assertEqual((change.type, change.changes, change.areas), ("seats", [["S-A-1", "h"]], {"Floor": 47}))
            self.client.holds.confirm(hold.id, fence=hold.fence)
            self.assertEqual(next(live).changes, [["S-A-1", "b"]])
            self.client.events.close(event.id)
            while (closed := next(live)).type != "event":
                pass
            self.assertEqual((closed.status, closed.prices.S), ("closed", 1000))
        with self.client.events.stream(event.id, after=first) as past:
            found = next(change for change in past if change.type == "seats")
            self.assertEqual(dict(found.changes)["S-A-1"], "b")

    def test_cut_connections_lose_and_repeat_nothing(self):
        event = new_event(self.client)
        with Proxy() as proxy, holdfast.Client(proxy.url, timeout=LONG_S) as client:
            with client.events.stream(event.id).open() as stream:
                last = 0
                for number in range(1, 8):
                    if number % 2 == 0:
                        proxy.cut()
                    self.client.holds.create(event=event.id, seats=[f"S-A-{number}"])
                    change = next(stream)
                    self.assertEqual(change.changes, [[f"S-A-{number}", "h"]])
                    self.assertGreater(change.seq, last)
                    last = change.seq

    def test_silence_is_a_lost_connection(self):
        server = Scripted(seats(11, ["a", "h"]))
        with unittest.mock.patch("holdfast.streams._SILENCE_S", 0.1):
            stream = self.follow(server)
            self.assertEqual(next(stream).seq, 11)
            reader = threading.Thread(target=lambda: list(stream))
            reader.start()
            while server.asked().count("11") < 2:
                self.assertTrue(reader.is_alive())
                time.sleep(0.02)
            stream.close()
            reader.join()

    def test_it_goes_on_where_it_was(self):
        server = Scripted(seats(11, ["a", "h"]) + seats(12, ["b", "h"]), b"", 503, 502, seats(13, ["c", "h"]))
        stream = self.follow(server)
        self.assertEqual([next(stream).seq for _ in range(3)], [11, 12, 13])
        self.assertEqual(server.asked(), ["10", "12", "12", "12", "12"])

    def test_what_comes_again_is_not_delivered_again(self):
        server = Scripted(seats(11, ["a", "h"]), seats(11, ["a", "h"]) + seats(12, ["b", "h"]) + seats(12, ["b", "h"]),
                          seats(13, ["c", "h"]))
        stream = self.follow(server)
        self.assertEqual([next(stream).seq for _ in range(3)], [11, 12, 13])

    def test_messages_that_share_an_id_are_delivered_together_or_not_at_all(self):
        early = message("event", 11, has_id=False, status="closed", prices={})
        server = Scripted(early, early + seats(12, ["a", "h"]))
        stream = self.follow(server)
        self.assertEqual([(next(stream).type, next(stream).type)], [("event", "seats")])
        self.assertEqual(server.asked(), ["10", "10"])

    def test_half_a_message_is_none(self):
        server = Scripted(seats(11, ["a", "h"])[:-1], seats(11, ["a", "h"]))
        self.assertEqual(next(self.follow(server)).seq, 11)

    def test_a_stream_from_now_on_remembers_where_it_began(self):
        server = Scripted(b"id: 77\nretry: 1\n\n", seats(78, ["a", "h"]))
        self.assertEqual(next(self.follow(server, after=None)).seq, 78)
        self.assertEqual(server.asked(), [None, "77"])

    def test_a_reset_reads_the_map_and_goes_on_from_it(self):
        old, new = ({"seq": seq, "event": "evt_1"} for seq in (19, 21))
        server = Scripted(message("reset", 20) + seats(21, ["x", "h"]) + seats(22, ["y", "h"]), seats(23, ["z", "h"]),
                          maps=[problem(503, "overloaded", retry_after=0), old, new])
        stream = self.follow(server)
        reset = next(stream)
        self.assertEqual((reset.type, reset.seq, reset.map), ("reset", 21, new))
        self.assertEqual([next(stream).seq, next(stream).seq], [22, 23])
        self.assertEqual(server.asked(), ["10", "22"])

    def test_a_stream_that_broke_before_it_said_where_it_was_is_reset(self):
        server = Scripted(b"", seats(21, ["x", "h"]), maps=[{"seq": 20}])
        stream = self.follow(server, after=None)
        self.assertEqual([(change.type, change.seq) for change in (next(stream), next(stream))],
                         [("reset", 20), ("seats", 21)])

    def test_a_seq_that_is_not_known_is_a_reset_of_the_real_server(self):
        event = new_event(self.client)
        with self.client.events.stream(event.id, after=10 ** 9) as stream:
            self.assertEqual(next(stream).map, self.client.events.seats(event.id))

    def test_a_refusal_ends_it(self):
        with self.assertRaises(holdfast.NotFound):
            next(self.client.events.stream("evt_none"))

    def test_another_thread_may_close_it(self):
        event = new_event(self.client)
        stream = self.client.events.stream(event.id).open()
        threading.Timer(0.1, stream.close).start()
        self.assertEqual(list(stream), [])

    def test_it_ends_with_its_client(self):
        event = new_event(self.client)
        client = holdfast.Client(URL, timeout=LONG_S)
        live = client.events.seat_map(event.id)
        stream = client.events.stream(event.id).open()
        client.close()
        self.assertEqual(list(stream), [])
        live._thread.join(LONG_S)
        self.assertFalse(live._thread.is_alive())
        self.assertEqual(live.seats["S-A-1"], "available")
        live.close()

    def test_a_lock_is_watched(self):
        session = self.client.sessions.open(ttl_ms=600_000)
        with self.client.locks.watch("watched/lock").open() as watch, self.client.sessions.stream(session.id).open() as own:
            lock = self.client.locks.acquire("watched/lock", session=session.id, value="here")
            self.client.locks.release("watched/lock", session=session.id, owner=lock.owner)
            kinds = []
            while "released" not in kinds:
                kinds.append(next(watch).type)
            self.assertEqual(kinds[0], "granted")
            self.assertEqual(next(own).fence, lock.fence)
        self.client.sessions.close(session.id)


class SeatMaps(unittest.TestCase):
    def test_it_is_kept_up_to_date(self):
        plan = {"name": "Hall", "size": {"width": 10, "height": 10}, "categories": [{"name": "A", "color": "#000000"}],
                "zones": [{"name": "Z", "position": {"x": 0, "y": 0}, "rows": [{"row_number": "1", "seats": [
                    {"seat_guid": f"g-{n}", "seat_number": str(n), "position": {"x": n, "y": 0}, "category": "A"}
                    for n in (1, 2, 3)]}]}]}
        with holdfast.Client(URL, timeout=LONG_S) as client, Proxy() as proxy:
            planned = client.events.create(name="Planned", currency="usd", plan=plan, prices={"A": 100})
            with client.events.seat_map(planned.id) as live:
                self.assertEqual(live.snapshot().seats, {f"g-{n}": "available" for n in (1, 2, 3)})
            event = new_event(client)
            client.holds.create(event=event.id, seats=["S-A-1"])
            with holdfast.Client(proxy.url, timeout=LONG_S) as other, other.events.seat_map(event.id) as live:
                self.assertEqual((live.seats["S-A-1"], live.seats["S-B-10"], len(live.seats)), ("held", "available", 20))
                proxy.cut()
                client.holds.create(event=event.id, seats=["S-A-2"], areas={"Floor": 5})
                client.events.block(event.id, seats=["S-A-3"])
                client.events.change(event.id, prices={"S": 1200})
                client.events.close(event.id)
                self.assertTrue(live.wait_for(lambda now: now.status == "closed" and now.prices["S"] == 1200, LONG_S))
                self.assertTrue(live.wait_for(lambda now: now.seats["S-A-3"] == "blocked", LONG_S))
                self.assertEqual((live.seats["S-A-2"], live.areas), ("held", {"Floor": 45}))
                self.assertEqual(live.snapshot().seq, client.events.seats(event.id).seq)


if __name__ == "__main__":
    unittest.main()
