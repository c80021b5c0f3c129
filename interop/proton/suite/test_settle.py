"""Who settles when."""

import itertools

from proton import Delivery, Link, Message

from scenario import Mode, Scenario


class Settlement(Scenario):
    def setUp(self):
        super().setUp()
        self.queue = self.address()

    def test_every_combination(self):
        senders = (Link.SND_UNSETTLED, Link.SND_SETTLED, Link.SND_MIXED)
        receivers = (Link.RCV_FIRST, Link.RCV_SECOND)
        for sends, confirms, delivers, settles in itertools.product(senders, receivers, senders, receivers):
            with self.subTest(sends=sends, confirms=confirms, delivers=delivers, settles=settles):
                queue = self.address()
                sender = self.sender(queue, Mode(sends, confirms))
                consumer = self.consumer(queue, Mode(delivers, settles))
                self.assertEqual(sender.link.remote_rcv_settle_mode, confirms)
                self.assertEqual(consumer.link.remote_snd_settle_mode, delivers)
                for i in range(5):
                    self.sends(sender, i, confirms)
                    self.takes(consumer, i, delivers, settles)
                consumer.close()
                self.assertEqual(self.consumer(queue).drain(10), [])

    def sends(self, sender, body, confirms):
        delivery = sender.link.send(Message(body=body))
        if sender.link.snd_settle_mode == Link.SND_SETTLED:
            return
        self.connection.wait(lambda: delivery.remote_state == Delivery.ACCEPTED, msg="confirmation")
        if confirms == Link.RCV_SECOND:
            self.assertFalse(delivery.settled, "the broker settled first")
        else:
            self.connection.wait(lambda: delivery.settled, msg="settlement")
        delivery.settle()

    def takes(self, consumer, body, delivers, settles):
        got = consumer.receive()
        self.assertEqual(got.message.body, body)
        self.assertEqual(got.delivery.settled, delivers == Link.SND_SETTLED)
        if got.delivery.settled:
            got.delivery.settle()
        elif settles == Link.RCV_SECOND:
            got.delivery.update(Delivery.ACCEPTED)
            self.connection.wait(lambda: got.delivery.settled, msg="the broker's settlement")
            got.delivery.settle()
        else:
            got.settle()

    def test_outcome_before_settlement(self):
        """A receiver that settles first may still send its outcome unsettled."""
        consumer = self.consumer(self.queue)
        sender = self.sender(self.queue)
        for state in (Delivery.RELEASED, Delivery.MODIFIED, Delivery.ACCEPTED):
            if state == Delivery.RELEASED:
                self.send(sender, Message(body="x"))
            got = consumer.receive()
            got.delivery.update(state)
            self.connection.wait(lambda: got.delivery.settled, msg="the broker's answer to an unsettled outcome")
            got.delivery.settle()
        self.assertEqual(consumer.drain(10), [])

    def test_settled_in_any_order(self):
        sender, consumer = self.sender(self.queue), self.consumer(self.queue, credit=10)
        self.send(sender, *(Message(body=i) for i in range(10)))
        got = [consumer.receive() for _ in range(10)]
        for i in (7, 2, 3, 4, 9, 0):
            got[i].settle()
        for i in (1, 5, 6, 8):
            got[i].settle(Delivery.RELEASED)
        again = [a.message.body for a in consumer.drain(10)]
        self.assertEqual(again, [1, 5, 6, 8])
