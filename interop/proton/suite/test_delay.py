"""Messages that wait for their time.

At addresses of patient.#, the first failed attempt is followed by 300 ms, the second by 600 ms, and the third by death.
"""

import time
import uuid

from proton import Condition, Delivery, Message, int32, symbol, timestamp, ulong

from scenario import Scenario

DELAY, TIME = symbol("x-opt-delivery-delay"), symbol("x-opt-delivery-time")
CUT = 0.002  # the broker's clock and this one are the same; milliseconds are cut off in between


class Delays(Scenario):
    def setUp(self):
        super().setUp()
        self.queue = self.patient()
        self.mark = uuid.uuid4()

    def patient(self):
        return "patient." + self.address()

    def offer(self, queue=None):
        self.send(self.sender(queue or self.queue), Message(id=self.mark, body="marked"))
        return self.consumer(queue or self.queue)

    def attempt(self, consumer, count, since, after):
        """The message comes no sooner than after a while, with so many failed attempts before."""
        got = consumer.receive()
        self.assertGreaterEqual(time.time() - since, after - CUT)
        self.assertEqual((got.message.id, got.message.delivery_count), (self.mark, count))
        return got

    def test_redelivery_waits(self):
        consumer, since = self.offer(), time.time()
        for count, after in enumerate((0, 0.3, 0.6)):
            got = self.attempt(consumer, count, since, after)
            since = time.time()
            got.modify(failed=True)
        dead = self.find("DLQ", self.mark)
        self.assertEqual(dead.delivery_count, 3)
        for key, want in {"x-opt-ORIG-ADDRESS": self.queue, "x-opt-ORIG-QUEUE": self.queue,
                          "x-opt-death-reason": "max-delivery-attempts reached: 3"}.items():
            self.assertEqual(dead.annotations.get(symbol(key)), want, key)
        self.assertLess(abs(dead.annotations[symbol("x-opt-death-time")] / 1000 - time.time()), 20)
        self.assertEqual(consumer.drain(10), [])

    def test_consumer_says_how_long(self):
        consumer, since = self.offer(), time.time()
        for count, (after, annotations) in enumerate((
                (0, {DELAY: ulong(150), symbol("x-opt-mine"): "kept"}),
                (0.15, {TIME: timestamp(int(since * 1000) + 900)}))):
            got = self.attempt(consumer, count, since, after)
            got.modify(failed=True, annotations=annotations)
        got = self.attempt(consumer, 2, since, 0.9)
        self.assertEqual(dict(got.message.annotations), {symbol("x-opt-mine"): "kept"})
        got.settle()

    def test_consumer_says_at_once(self):
        for annotations in ({DELAY: int32(0)}, {DELAY: -5}, {TIME: timestamp(1)}):
            queue = self.patient()
            consumer, since = self.offer(queue), time.time()
            self.attempt(consumer, 0, since, 0).modify(failed=True, annotations=annotations)
            self.assertEqual([a.message.delivery_count for a in consumer.drain(10)], [1])
            consumer.close()

    def test_not_failed_does_not_wait(self):
        consumer, since = self.offer(), time.time()
        self.attempt(consumer, 0, since, 0).settle(Delivery.RELEASED)
        self.attempt(consumer, 0, since, 0).modify(annotations={DELAY: 60000})
        self.attempt(consumer, 0, since, 0).settle()
        self.assertLess(time.time() - since, 30)

    def test_undeliverable_here_waits_for_others(self):
        here = self.offer()
        got, since = self.attempt(here, 0, 0, 0), time.time()
        got.modify(failed=True, undeliverable=True)
        here.link.flow(10)
        self.attempt(self.consumer(self.queue), 1, since, 0.3).settle()
        self.assertEqual(here.drain(10), [])

    def test_rejected_does_not_wait(self):
        consumer, since = self.offer(), time.time()
        self.attempt(consumer, 0, since, 0).modify(failed=True)
        self.attempt(consumer, 1, since, 0.3).reject(Condition("app:bad-order", "no such article"))
        dead = self.find("DLQ", self.mark)
        self.assertEqual(dead.delivery_count, 2)
        self.assertEqual(dead.annotations[symbol("x-opt-death-reason")], "rejected: app:bad-order: no such article")

    def test_waiting_holds_up_nobody(self):
        self.send(self.sender(self.queue), *(Message(body=i) for i in range(5)))
        consumer = self.consumer(self.queue, credit=5)
        got = [consumer.receive() for _ in range(5)]
        for i in (3, 1):
            got[i].modify(failed=True)
        for i in (0, 4):
            got[i].settle(Delivery.RELEASED)
        got[2].settle()
        self.assertEqual([a.message.body for a in consumer.drain(5)], [0, 4])
        again = [consumer.accept().message for _ in range(2)]
        self.assertEqual(sorted((m.body, m.delivery_count) for m in again), [(1, 1), (3, 1)])

    def test_sent_for_later(self):
        sender, since = self.sender(self.queue), time.time()
        for body, annotations in ((2, {DELAY: 600}), (1, {TIME: timestamp(int(since * 1000) + 300)}), (0, {}),
                                  (3, {DELAY: 1, TIME: timestamp(int(since * 1000) + 900)})):
            self.send(sender, Message(id=self.mark, body=body, annotations=annotations))
        consumer = self.consumer(self.queue)
        for body in range(4):
            got = self.attempt(consumer, 0, since, 0.3 * body)
            self.assertEqual(got.message.body, body)
            got.settle()
        self.assertEqual(consumer.drain(10), [])

    def test_sent_for_when(self):
        """What says neither a number nor a time is refused."""
        delivery = self.sender(self.queue).link.send(Message(body=1, annotations={DELAY: "soon"}))
        self.connection.wait(lambda: delivery.remote_state, msg="outcome")
        self.assertEqual((delivery.remote_state, delivery.remote.condition.name), (Delivery.REJECTED, "amqp:invalid-field"))
