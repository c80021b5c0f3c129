"""What becomes of a message with each outcome."""

import uuid

from proton import Condition, Delivery, Message, symbol, ubyte

from scenario import Scenario


class Outcomes(Scenario):
    def setUp(self):
        super().setUp()
        self.queue = self.address()
        self.mark = uuid.uuid4()

    def offer(self, **fields):
        self.send(self.sender(self.queue), Message(id=self.mark, body="marked", **fields))
        return self.consumer(self.queue)

    def test_accepted(self):
        consumer = self.offer()
        consumer.accept()
        consumer.close()
        self.assertEqual(self.consumer(self.queue, connection=self.connect()).drain(10), [])

    def test_rejected(self):
        consumer = self.offer(annotations={symbol("x-opt-mine"): "kept"})
        consumer.receive().reject(Condition("app:bad-order", "no such article 4711"))
        self.assertEqual(consumer.drain(10), [])
        dead = self.find("DLQ", self.mark)
        self.assertEqual(dead.body, "marked")
        for key, want in {"x-opt-ORIG-ADDRESS": self.queue, "x-opt-ORIG-QUEUE": self.queue, "x-opt-mine": "kept"}.items():
            self.assertEqual(dead.annotations.get(symbol(key)), want, key)
        self.assertRegex(str(dead.annotations[symbol("x-opt-death-reason")]), "app:bad-order|no such article 4711")

    def test_released(self):
        consumer = self.offer()
        first = consumer.receive()
        self.assertEqual((first.message.delivery_count, first.message.first_acquirer), (0, True))
        first.settle(Delivery.RELEASED)
        again = consumer.accept().message
        self.assertEqual((again.id, again.delivery_count, again.first_acquirer), (self.mark, 0, False))

    def test_modified_failed(self):
        consumer = self.offer(annotations={symbol("x-opt-old"): "as sent", symbol("x-opt-changed"): "as sent"})
        for attempt in range(3):
            got = consumer.receive()
            self.assertEqual(got.message.delivery_count, attempt)
            got.modify(failed=True, annotations={symbol("x-opt-changed"): attempt, symbol("x-opt-new"): ["a", {symbol("k"): ubyte(1)}]})
        got = consumer.accept().message
        self.assertEqual(got.delivery_count, 3)
        self.assertEqual(dict(got.annotations), {
            symbol("x-opt-old"): "as sent", symbol("x-opt-changed"): 2, symbol("x-opt-new"): ["a", {symbol("k"): ubyte(1)}]})

    def test_modified_not_failed(self):
        consumer = self.offer()
        consumer.receive().modify()
        self.assertEqual(consumer.accept().message.delivery_count, 0)

    def test_undeliverable_here(self):
        here = self.offer()
        here.receive().modify(failed=True, undeliverable=True)
        there = self.consumer(self.queue)
        got = there.accept().message
        self.assertEqual((got.id, got.delivery_count), (self.mark, 1))
        self.assertEqual(here.drain(10), [])

    def test_attempts_end_in_dlq(self):
        consumer = self.offer()
        for attempt in range(10):
            got = consumer.receive()
            self.assertEqual(got.message.delivery_count, attempt)
            got.modify(failed=True)
        self.assertEqual(consumer.drain(10), [])
        dead = self.find("DLQ", self.mark)
        self.assertEqual(dead.delivery_count, 10)
        self.assertEqual(dead.annotations.get(symbol("x-opt-ORIG-QUEUE")), self.queue)

    def test_close_returns_in_order(self):
        self.send(self.sender(self.queue), *(Message(body=i) for i in range(5)))
        other = self.connect()
        consumer = self.consumer(self.queue, connection=other, credit=5)
        for _ in range(5):
            consumer.receive()
        other.close()
        consumer = self.consumer(self.queue)
        for i in range(5):
            got = consumer.accept().message
            self.assertEqual((got.body, got.delivery_count), (i, 0))

    def test_settled_without_a_state(self):
        consumer = self.offer()
        consumer.receive().delivery.settle()
        got = consumer.accept().message
        self.assertEqual((got.id, got.delivery_count), (self.mark, 0))

    def test_expired(self):
        self.send(self.sender(self.queue), Message(id=self.mark, body=1, ttl=0.2))
        late = self.find("ExpiryQueue", self.mark)
        for key in ("x-opt-ORIG-ADDRESS", "x-opt-ORIG-QUEUE"):
            self.assertEqual(late.annotations.get(symbol(key)), self.queue, key)
        self.assertIn(symbol("x-opt-ACTUAL-EXPIRY"), late.annotations)
        self.assertEqual(self.consumer(self.queue).drain(10), [])
