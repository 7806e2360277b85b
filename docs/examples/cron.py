#!/usr/bin/env python3
"""A cron job on several machines: one of them writes the report of the day, and no late one overwrites it.

  0 3 * * *  cron.py http://127.0.0.1:8080 /var/lib/reports.db report.sh

The others find the lock taken and are fine, so cron sends no mail.  A machine that stood still while it had the lock,
and wakes up when another one has written, is refused by the fence.
"""

import datetime
import os
import sqlite3
import subprocess
import sys

import holdfast

url, database, *command = sys.argv[1:]
with holdfast.Client(url, os.environ.get("HOLDFAST_KEY")) as client:
    try:
        with client.lock("nightly-report", ttl=30, wait=0) as lock:
            text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            with sqlite3.connect(database) as reports:  # one transaction
                holdfast.check_fence(reports, lock.resource, lock.fence)
                reports.execute("CREATE TABLE IF NOT EXISTS report (day TEXT PRIMARY KEY, text TEXT)")
                reports.execute("REPLACE INTO report VALUES (?, ?)", (datetime.date.today().isoformat(), text))
    except holdfast.Conflict as refusal:
        if refusal.code != "lock_taken":
            raise
