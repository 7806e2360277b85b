"""Notifications, as Standard Webhooks signs them."""

import base64
import hashlib
import hmac
import time
import unittest

from support import holdfast

KEY = b"a key of twenty-four byte"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
BODY = '{"type":"booking.confirmed","timestamp":"2026-11-15T19:33:00.000Z","data":{"object":"booking"}}'


def sign(body=BODY, key=KEY, id="msg_1", at=None):
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(key, f"{id}.{stamp}.{body}".encode(), hashlib.sha256).digest()
    return {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}


class Webhooks(unittest.TestCase):
    def refused(self, headers, body=BODY, secret=SECRET):
        with self.assertRaises(holdfast.HoldfastError) as caught:
            holdfast.webhooks.verify(body, headers, secret)
        self.assertEqual(caught.exception.code, "invalid_signature")

    def test_one_that_is_signed_is_returned(self):
        event = holdfast.webhooks.verify(BODY.encode(), sign(), SECRET)
        self.assertEqual((event.type, event.data.object), ("booking.confirmed", "booking"))
        self.assertEqual(holdfast.webhooks.verify(BODY, sign(), SECRET), event)

    def test_the_example_of_the_specification(self):
        digest = hmac.new(base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
                          b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}', hashlib.sha256).digest()
        self.assertEqual(base64.b64encode(digest), b"g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")

    def test_names_of_headers_have_no_case(self):
        self.assertTrue(holdfast.webhooks.verify(BODY, {k.title(): v for k, v in sign().items()}, SECRET))

    def test_one_of_several_signatures_and_one_of_several_secrets_is_enough(self):
        headers = sign()
        headers["webhook-signature"] = f"v1,AAAA v1a,xyz {headers['webhook-signature']} v1,BBBB"
        other = "whsec_" + base64.b64encode(b"another key, not the same").decode()
        self.assertTrue(holdfast.webhooks.verify(BODY, headers, [other, SECRET]))
        self.refused(headers, secret=other)

    def test_what_is_forged_is_refused(self):
        self.refused(sign(), body=BODY.replace("confirmed", "cancelled"))
        self.refused(sign(key=b"another"))
        self.refused({**sign(), "webhook-id": "msg_2"})
        self.refused({**sign(), "webhook-signature": ""})
        self.refused({**sign(), "webhook-signature": sign()["webhook-signature"].replace("v1,", "v2,")})
        self.refused({**sign(), "webhook-timestamp": "now"})
        for name in sign():
            self.refused({key: value for key, value in sign().items() if key != name})

    def test_what_is_more_than_five_minutes_off_is_refused(self):
        self.refused(sign(at=time.time() - 301))
        self.refused(sign(at=time.time() + 420))
        self.assertTrue(holdfast.webhooks.verify(BODY, sign(at=time.time() - 180), SECRET))

    def test_a_body_that_is_no_object_is_an_error_though_signed(self):
        with self.assertRaisesRegex(holdfast.HoldfastError, "invalid_request"):
            holdfast.webhooks.verify("[1]", sign("[1]"), SECRET)

    def test_a_secret_that_is_none_is_a_mistake_of_the_caller(self):
        with self.assertRaises(ValueError) as caught:
            holdfast.webhooks.verify(BODY, sign(), "whsec_not base64!")
        self.assertNotIn("not base64!", str(caught.exception))
        for secret in ("", "whsec_", None, [SECRET, ""]):  # with an empty key, anybody could sign
            with self.subTest(secret), self.assertRaises(ValueError):
                holdfast.webhooks.verify(BODY, sign(key=b""), secret)
        with self.assertRaises(TypeError):
            holdfast.webhooks.verify({"type": "booking.confirmed"}, sign(), SECRET)


if __name__ == "__main__":
    unittest.main()
