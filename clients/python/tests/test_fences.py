"""The guard at the target of a write."""

import contextlib
import importlib
import os
import sqlite3
import tempfile
import unittest

from support import holdfast, new_name


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
    """Each driver that is installed, at HOLDFAST_POSTGRES: a database with share/holdfast/fence.sql."""

    def each_connection(self):
        if not os.environ.get("HOLDFAST_POSTGRES"):
            self.skipTest("there is no PostgreSQL")
        for name in ("psycopg", "psycopg2"):
            try:
                driver = importlib.import_module(name)
            except ImportError:
                continue
            with self.subTest(name), contextlib.closing(driver.connect(os.environ["HOLDFAST_POSTGRES"])) as db:
                yield db, new_name()

    def test_a_stale_fence_is_told_from_other_failures(self):
        for db, report in self.each_connection():
            holdfast.check_fence(db, report, 8)
            db.commit()
            with self.assertRaises(holdfast.StaleFence):
                holdfast.check_fence(db, report, 7)
            with self.assertRaises(Exception) as caught:  # the transaction has failed
                holdfast.check_fence(db, report, 9)
            self.assertNotIsInstance(caught.exception, holdfast.StaleFence)
            db.rollback()
            holdfast.check_fence(db, report, 9)

    def test_outside_a_transaction_it_is_refused(self):
        for db, report in self.each_connection():
            db.autocommit = True
            with self.assertRaises(ValueError):
                holdfast.check_fence(db, report, 7)
            db.cursor().execute("BEGIN")
            holdfast.check_fence(db, report, 7)


if __name__ == "__main__":
    unittest.main()
