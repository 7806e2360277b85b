"""Locks: held by one, told when they are lost, and given back."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import sys
import threading
import time
import unittest
import unittest.mock

from support import CUT, HANG, LONG_S, LOSE, URL, Program, Proxy, holdfast, new_name, once
from holdfast.clock import now

TTL_S = 600  # of locks that must not be lost, however long the machine stands still


def until(what):
    """Waits for what will be so, unless the test fails."""
    pause = threading.Event()
    for _ in range(LONG_S * 50):
        if what():
            return
        pause.wait(0.02)
    raise AssertionError("waited in vain")


class Locks(unittest.TestCase):
    def setUp(self):
        self.client = self.new_client("one")
        self.other = self.new_client("two")
        self.name = new_name()

    def new_client(self, label, url=URL):
        client = holdfast.Client(url, timeout=LONG_S, label=label)
        self.addCleanup(client.close)
        return client

    def new_proxy(self, plan=lambda request: None):
        proxy = Proxy(plan)
        self.addCleanup(proxy.__exit__)  # after the clients behind it are closed
        return proxy

    def lock(self, client=None, name=None, **options):
        return (client or self.client).lock(name or self.name, **{"ttl": TTL_S, **options})

    def in_background(self, lock):
        """Takes it in a thread; the event is set once it is held, and the thread ends when `go` is."""
        held, go = threading.Event(), threading.Event()

        def work():
            with lock:
                held.set()
                go.wait(LONG_S)
        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(go.set)
        return held, go

    def waiters(self):
        return [waiter.label for waiter in self.client.locks.get(self.name).waiters]

    # ---- holding ----

    def test_it_is_held_by_one(self):
        with self.lock() as lock:
            self.assertTrue(lock.held)
            self.assertFalse(lock.lost.is_set())
            lock.check()
            self.assertEqual(lock.fence, self.client.locks.get(self.name).holders[0].fence)
            with self.assertRaises(holdfast.Conflict) as caught:
                self.lock(self.other, wait=0).acquire()
            self.assertEqual((caught.exception.code, caught.exception.extra.holders), ("lock_taken", ["one"]))
        self.assertFalse(lock.held)
        with self.assertRaises(holdfast.LockLost):
            lock.check()
        with self.lock(self.other, wait=0) as next:
            self.assertGreater(next.fence, lock.fence)

    def test_it_is_kept_alive_in_the_background(self):
        kept = []
        proxy = self.new_proxy(lambda request: kept.append(request.path) if "keepalive" in request.path else None)
        with self.lock(self.new_client("proxied", proxy.url), ttl=9) as lock:
            session = lock._grants[0].session
            first = session.deadline
            until(lambda: session.deadline > first)
            self.assertTrue(lock.held)
            self.assertGreater(len(kept), 0)

    def test_a_client_has_one_session_for_each_ttl(self):
        opened = []
        proxy = self.new_proxy(lambda request: opened.append(request.path))
        client = self.new_client("proxied", proxy.url)
        with self.lock(client), self.lock(client, new_name()), self.lock(client, new_name(), ttl=TTL_S + 1):
            pass
        client.close()
        self.assertEqual(opened.count("/v1/sessions"), 2)

    def test_shared_locks_and_slots(self):
        with self.lock(shared=True), self.lock(self.other, shared=True, wait=0):
            with self.assertRaises(holdfast.Conflict):
                self.lock(wait=0).acquire()
        name = new_name("slots")
        with self.lock(name=name, slots=2) as one, self.lock(self.other, name, slots=2, wait=0) as two:
            self.assertEqual(sorted([one.slot, two.slot]), [0, 1])
            self.assertEqual(one.resource, f"{name}#{one.slot}")
            with self.assertRaises(holdfast.Conflict):
                self.lock(name=name, slots=2, wait=0).acquire()

    def test_a_holder_leaves_a_value(self):
        with self.lock(value="10.0.0.7:9000") as lock:
            self.assertEqual(self.other.locks.get(self.name).value, "10.0.0.7:9000")
            lock.set_value("10.0.0.8:9000")
            self.assertEqual(self.other.locks.get(self.name).value, "10.0.0.8:9000")
        self.assertIsNone(self.other.locks.get(self.name).value)

    def test_a_set_is_held_whole_or_not_at_all(self):
        a, b, c = sorted(new_name("set") for _ in range(3))
        with self.client.lock([c, a], ttl=TTL_S) as both:
            self.assertEqual(both.names, (a, c))
            self.assertEqual(both.fence, both.fences[a])
            self.assertGreater(both.fences[c], both.fences[a])
            with self.assertRaises(holdfast.Conflict):
                self.other.lock([a, b], ttl=TTL_S, wait=0).acquire()
            with self.assertRaises(holdfast.Conflict):
                self.other.lock([b, c], ttl=TTL_S, wait=0).acquire()
            with self.lock(self.other, b, wait=0):  # nobody has kept it
                pass
        with self.other.lock([a, b, c], ttl=TTL_S, wait=0):
            pass

    def test_a_lock_is_used_again_but_not_twice_at_once(self):
        lock = self.lock()
        for _ in range(2):
            with lock:
                with self.assertRaises(RuntimeError):
                    lock.acquire()
        lock.release()  # it has nothing to give back

    def test_the_exception_of_the_block_is_what_is_raised(self):
        with self.assertRaises(KeyError):
            with self.lock():
                self.client.locks.break_lock(self.name)
                raise KeyError
        with self.lock(self.other, wait=0):
            pass

    # ---- waiting ----

    def test_waiters_are_served_in_order(self):
        order = []
        with self.lock():
            threads = []
            for number in range(3):
                def work(number=number):
                    with self.lock(self.other):
                        order.append(number)
                threads.append(threading.Thread(target=work))
                threads[-1].start()
                until(lambda: len(self.waiters()) == number + 1)
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(order), [0, 1, 2])  # a thread that stands still when it is its turn goes back into the line

    def test_larger_priorities_go_first(self):
        with self.lock():
            low, go = self.in_background(self.lock(self.other, priority=1))
            until(lambda: len(self.waiters()) == 1)
            self.in_background(self.lock(self.other, priority=5))
            until(lambda: len(self.waiters()) == 2)
            self.assertEqual([waiter.priority for waiter in self.client.locks.get(self.name).waiters], [5, 1])
            go.set()

    def test_who_gives_up_leaves_the_line(self):
        with self.lock():
            with self.assertRaises(holdfast.Conflict) as caught:
                self.lock(self.other, wait=0.2).acquire()
            self.assertEqual(caught.exception.code, "lock_taken")
            until(lambda: self.waiters() == [])

    def test_who_waits_gives_up_when_the_client_is_closed(self):
        told = []

        def work():
            try:
                self.lock(self.other).acquire()
            except holdfast.HoldfastError as error:
                told.append(error.code)
        with self.lock():
            waiter = threading.Thread(target=work)
            waiter.start()
            until(lambda: self.waiters() == ["two"])
            self.other.close()
            waiter.join()
            self.assertEqual(told, ["client_closed"])
            until(lambda: self.waiters() == [])

    def test_an_interrupt_leaves_the_line(self):
        with self.lock(), Program("""
                import holdfast, signal, sys
                signal.signal(signal.SIGINT, signal.default_int_handler)
                client = holdfast.Client(sys.argv[1], label="interrupted")
                print("ready")
                try:
                    client.lock(sys.argv[2], ttl=600).acquire()
                except KeyboardInterrupt:
                    print("interrupted")
                    sys.stdin.readline()
                """, URL, self.name) as program:
            self.assertEqual(program.read(), "ready")
            until(lambda: self.waiters() == ["interrupted"])
            program.run.send_signal(2)
            self.assertEqual(program.read(), "interrupted")
            until(lambda: self.waiters() == [])

    def test_tasks_of_asyncio_that_share_a_thread_are_not_one(self):
        async def two_tasks():
            asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
            with self.assertRaises(holdfast.Conflict) as caught:
                held = await asyncio.to_thread(self.lock().acquire)
                try:
                    await asyncio.to_thread(self.lock(wait=0.1).acquire)
                finally:
                    await asyncio.to_thread(held.release)
            return caught.exception.code
        self.assertEqual(asyncio.run(two_tasks()), "lock_taken")

    def test_threads_exclude_each_other(self):
        inside, most = [], []

        def work():
            for _ in range(3):
                with self.lock():
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(most, [1] * 12)

    # ---- faults ----

    def test_lost_answers_change_nothing(self):
        def writes(request):
            return request.method == "POST" and "keepalive" not in request.path
        proxy = self.new_proxy(once(LOSE, None, CUT, LOSE, None, LOSE, of=writes))
        client = self.new_client("proxied", proxy.url)
        with self.lock(client) as lock:
            self.assertTrue(lock.held)
        owners = {request.body for request in proxy.requests if request.path == f"/v1/locks/{self.name}"}
        self.assertEqual(len(owners), 1)
        with self.lock(self.other, wait=LONG_S):
            pass

    def test_a_release_that_is_not_answered_is_made_in_the_background(self):
        proxy = self.new_proxy()
        client = holdfast.Client(proxy.url, timeout=0.5)
        self.addCleanup(client.close)
        lock = client.lock(self.name, ttl=60)
        until(lambda: try_to(lock.acquire))
        proxy.plan = lambda request: HANG if "/release" in request.path else None
        lock.release()
        self.assertFalse(lock.held)
        proxy.plan = lambda request: None
        with self.lock(self.other):
            pass

    # ---- losing it ----

    def test_a_lock_that_an_operator_breaks_is_lost(self):
        with self.assertRaises(holdfast.LockLost):
            with self.lock() as lock, self.lock(name=new_name()) as kept:
                self.client.locks.break_lock(self.name)
                self.assertTrue(lock.lost.wait(LONG_S))
                self.assertFalse(lock.held)
                self.assertTrue(kept.held)
                with self.assertRaises(holdfast.LockLost) as caught:
                    lock.check()
                self.assertIsInstance(caught.exception, holdfast.Gone)

    def test_it_is_lost_before_another_can_hold_it(self):
        proxy = self.new_proxy()
        client = self.new_client("cut off", proxy.url)
        lock = client.lock(self.name, ttl=1).acquire()
        proxy.plan = lambda request: HANG
        with self.lock(self.other) as next:
            self.assertFalse(lock.held)
            self.assertTrue(lock.lost.wait(LONG_S))
            self.assertGreater(next.fence, lock.fence)
        with self.assertRaises(holdfast.LockLost):
            lock.release()
        proxy.plan = lambda request: None
        with client.lock(self.name, ttl=TTL_S):  # in another session
            pass

    def test_it_is_lost_on_a_machine_that_slept_past_the_ttl(self):
        told, asked = self.lock(ttl=TTL_S).acquire(), self.new_client("three").lock(new_name(), ttl=TTL_S).acquire()
        self.assertTrue(told.held and asked.held)
        if sys.platform == "linux":  # whose other clocks stand still while the machine sleeps
            self.assertLess(abs(now() - time.clock_gettime(time.CLOCK_BOOTTIME)), LONG_S)
        with unittest.mock.patch("holdfast.sessions.now", lambda: now() + 2 * TTL_S):
            self.assertFalse(asked.held)
            self.assertTrue(asked.lost.is_set())
            self.assertTrue(told.lost.wait(LONG_S))
            for lock in told, asked:
                with self.assertRaises(holdfast.LockLost):
                    lock.check()
                with self.assertRaises(holdfast.LockLost):
                    lock.release()

    def test_a_session_that_ends_ends_its_locks(self):
        lock = self.lock(ttl=60).acquire()
        self.client.close()
        self.assertTrue(lock.lost.is_set())
        with self.lock(self.other, wait=LONG_S):
            pass
        with self.lock():  # the client opens another session
            pass

    def test_an_unused_session_ends(self):
        with self.lock(ttl=1):
            pass
        before = self.client.cell.get().sessions
        until(lambda: not any(thread.name == "holdfast-session" for thread in threading.enumerate()))
        self.assertLessEqual(self.client.cell.get().sessions, before)

    # ---- fork ----

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_a_lock_of_the_parent_is_not_held_in_the_child(self):
        with self.lock() as lock:
            context = multiprocessing.get_context("fork")
            mine, yours = context.Pipe()
            child = context.Process(target=in_the_child, args=(self.client, lock, new_name(), yours))
            child.start()
            told = mine.recv() if mine.poll(LONG_S) else None
            child.join(LONG_S)
            self.assertEqual(told, {"held": False, "lost": True, "check": "lock_lost", "release": "lock_lost",
                                    "own": True, "holders": 1})
            self.assertTrue(lock.held)
            self.assertFalse(lock.lost.is_set())
        with self.lock(self.other, wait=0):
            pass


def try_to(work):
    try:
        work()
        return True
    except holdfast.HoldfastError:
        return False


def in_the_child(client, lock, name, pipe):
    told = {"held": lock.held, "lost": lock.lost.is_set()}
    for what in ("check", "release"):
        try:
            getattr(lock, what)()
        except holdfast.LockLost as lost:
            told[what] = lost.code
    with client.lock(name, ttl=TTL_S) as own:
        told["own"] = own.held
        told["holders"] = client.locks.get(lock.names[0]).n_holders
    client.close()
    pipe.send(told)
    pipe.close()


if __name__ == "__main__":
    unittest.main()
