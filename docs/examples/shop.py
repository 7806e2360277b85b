#!/usr/bin/env python3
"""The part of a shop's server that sells seats; WSGI, with nothing but the standard library.

  POST /orders        {"order": "...", "event": "evt_...", "seats": ["Stalls-A-1"]}: holds and books the seats, and
                      answers what the card form needs; 409 if they are taken; 503: send the same again
  GET /orders/ORDER   {"status": "confirmed"} once it is paid; believe nothing else

The page draws the order's number, a UUID, which is a secret of this buyer.  An order that is sent twice is one order.

  HOLDFAST_URL=http://127.0.0.1:8080 python3 shop.py 8000
"""

import json
import os
import sys
from http import HTTPStatus
from wsgiref.simple_server import make_server

import holdfast

client = holdfast.Client(os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8080"), os.environ.get("HOLDFAST_KEY"),
                         timeout=10)
BODY_MAX = 10_000


def place(order, event, seats):
    hold = client.holds.create(event=event, seats=seats, idempotency_key=f"{order}-hold")
    booked = client.bookings.create(hold=hold.id, reference=order, idempotency_key=f"{order}-booking")
    booking = client.bookings.get(booked.id)  # the answer to a repeat has no client_secret
    return 201, {"number": booking.number, "amount": booking.amount, "payment": booking.payment}


def look(order):
    found = client.bookings.list(reference=order).data
    return (200, {"status": found[0].status}) if found else (404, {})


def shop(environ, answer):
    route = environ["REQUEST_METHOD"], *environ["PATH_INFO"].split("/")[1:]
    try:
        if route == ("POST", "orders"):
            length = min(int(environ.get("CONTENT_LENGTH") or 0), BODY_MAX)
            wanted = json.loads(environ["wsgi.input"].read(length))
            status, found = place(str(wanted["order"]), wanted["event"], wanted["seats"])
        elif route[:2] == ("GET", "orders") and len(route) == 3:
            status, found = look(route[2])
        else:
            status, found = 404, {}
    except (ValueError, KeyError, TypeError):
        status, found = 400, {}
    except holdfast.HoldfastError as error:
        status = error.status if error.status in (400, 404, 409, 410, 422) else 503
        found = {"code": error.code, "seats": error.extra.get("seats")}
    answer(f"{status} {HTTPStatus(status).phrase}", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]


if __name__ == "__main__":
    with make_server("127.0.0.1", int(sys.argv[1]), shop) as server:
        print(f"shop on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
