"""The guard at the target of a write."""

import os
import sqlite3
import tempfile
import unittest

from support import holdfast


class Sqlite(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "shop.db")
        self.db = self.connect()
        with self.db:
            self.db.execute("CREATE TABLE report (line TEXT)")

    def connect(self, **options):
        db = sqlite3.connect(self.path, **options)
        self.addCleanup(db.close)
        return db

    def write(self, fence, line, db=None, resource="report"):
        db = db or self.db
        with db:
            holdfast.check_fence(db, resource, fence)
            db.execute("INSERT INTO report VALUES (?)", (line,))

    def lines(self):
        return [line for line, in self.db.execute("SELECT line FROM report")]

    def test_a_holder_that_was_replaced_does_not_write(self):
        self.write(7, "A")
        self.write(7, "A again")
        self.write(8, "B", db=self.connect())
        with self.assertRaises(holdfast.StaleFence) as caught:
            self.write(7, "A, too late")
        self.assertEqual(caught.exception.code, "stale_fence")
        self.assertEqual(self.lines(), ["A", "A again", "B"])

    def test_without_the_guard_it_does(self):
        for line in ("A", "B", "A, too late"):
            with self.db:
                self.db.execute("INSERT INTO report VALUES (?)", (line,))
        self.assertEqual(self.lines()[-1], "A, too late")

    def test_a_write_that_was_rolled_back_leaves_no_fence(self):
        with self.assertRaises(sqlite3.OperationalError), self.db:
            holdfast.check_fence(self.db, "report", 9)
            self.db.execute("no SQL")
        self.write(7, "A")
        self.assertEqual(self.lines(), ["A"])

    def test_resources_have_fences_of_their_own(self):
        self.write(9, "slot 1", resource="report#1")
        self.write(7, "slot 0", resource="report#0")

    def test_outside_a_transaction_it_is_refused(self):
        db = self.connect(isolation_level=None)
        with self.assertRaises(ValueError):
            holdfast.check_fence(db, "report", 7)
        db.execute("BEGIN IMMEDIATE")
        holdfast.check_fence(db, "report", 7)
        db.execute("COMMIT")
        with self.assertRaises(holdfast.StaleFence):
            self.write(6, "late")

    def test_nonsense_is_refused(self):
        for resource, fence in (("", 1), ("x" * 256, 1), ("x", 0)):
            with self.assertRaises(ValueError):
                holdfast.check_fence(self.db, resource, fence)


class Postgres(unittest.TestCase):
    """A connection as psycopg has them; the SQL behind it is tested with the guard itself."""

    class Connection:
        autocommit = False

        def __init__(self, code=None):
            self.code = code
            self.asked = []

        def cursor(self):
            return self

        def close(self):
            pass

        def execute(self, sql, values):
            self.asked.append((sql, values))
            if self.code:
                error = RuntimeError("refused")
                error.sqlstate = self.code
                raise error

    def test_it_asks_the_function_of_fence_sql(self):
        connection = self.Connection()
        holdfast.check_fence(connection, "report", 7)
        self.assertEqual(connection.asked, [("SELECT holdfast_fence(%s, %s)", ("report", 7))])

    def test_a_stale_fence_is_told_from_other_failures(self):
        with self.assertRaises(holdfast.StaleFence):
            holdfast.check_fence(self.Connection("SF001"), "report", 7)
        with self.assertRaises(RuntimeError):
            holdfast.check_fence(self.Connection("40001"), "report", 7)

    def test_outside_a_transaction_it_is_refused(self):
        connection = self.Connection()
        connection.autocommit = True
        with self.assertRaises(ValueError):
            holdfast.check_fence(connection, "report", 7)


if __name__ == "__main__":
    unittest.main()
