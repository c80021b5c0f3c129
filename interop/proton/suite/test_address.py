"""Queues, topics and the ways to name them."""

from proton import Delivery, Message, ProtonException
from proton.utils import SyncRequestResponse

from scenario import Capability, Scenario


def bodies(arrived):
    return [a.message.body for a in arrived]


class Addresses(Scenario):
    def queue(self, address, *options):
        one, two = self.consumer(address, *options), self.consumer(address, *options)
        self.send(self.sender(address, *options), *(Message(body=i) for i in range(3)))
        got = bodies(one.drain(2)) + bodies(two.drain(2))
        self.assertEqual(sorted(got), [0, 1, 2])

    def topic(self, address, *options):
        sender = self.sender(address, *options)
        sender.send(Message(body="nobody listens"), error_states=[Delivery.REJECTED])
        one, two = self.consumer(address, *options), self.consumer(address, *options)
        self.send(sender, Message(body=1), Message(body=2))
        late = self.consumer(address, *options)
        self.assertEqual(bodies(one.drain(10)), [1, 2])
        self.assertEqual(bodies(two.drain(10)), [1, 2])
        self.assertEqual(bodies(late.drain(10)), [])

    def test_queue_by_default(self):
        self.queue(self.address())

    def test_queue_by_capability(self):
        self.queue(self.address(), Capability("queue"))

    def test_queue_by_prefix(self):
        self.queue("queue://" + self.address())

    def test_topic_by_capability(self):
        self.topic(self.address(), Capability("topic"))

    def test_topic_by_prefix(self):
        self.topic("topic://" + self.address())

    def test_queue_by_full_name(self):
        base = self.address()
        left, right = self.consumer(base + "::left"), self.consumer(base + "::right")
        self.send(self.sender(base + "::left"), Message(body="to the left"))
        self.assertEqual(left.accept().message.body, "to the left")
        self.assertEqual(right.drain(10), [])

    def test_anonymous_relay(self):
        self.assertIn("ANONYMOUS-RELAY", [str(c) for c in self.connection.conn.remote_offered_capabilities])
        one, two = self.address(), self.address()
        sender = self.sender(None)
        self.send(sender, Message(address=one, body=1), Message(address=two, body=2))
        for address, body in ((one, 1), (two, 2)):
            got = self.consumer(address).accept().message
            self.assertEqual((got.address, got.body), (address, body))
        with self.assertRaises(ProtonException):
            sender.send(Message(body="to nobody"))

    def test_request_response(self):
        service = self.address()
        answering = self.connect()
        requests, replies = self.consumer(service, connection=answering), self.sender(None, connection=answering)
        client = SyncRequestResponse(self.connection, service)
        self.assertTrue(client.reply_to)
        for i in range(3):
            sender = self.sender(service)
            self.send(sender, Message(body=i, reply_to=client.reply_to, correlation_id=str(i)))
            asked = requests.accept().message
            self.send(replies, Message(address=asked.reply_to, correlation_id=asked.correlation_id, body=asked.body * 2))
            self.connection.wait(lambda: client.response)
            self.assertEqual((client.response.correlation_id, client.response.body), (str(i), i * 2))
            client.response = None
            client.receiver.flow(1)

    def test_dynamic_addresses_differ(self):
        one, two = self.consumer(None, dynamic=True), self.consumer(None, dynamic=True)
        first, second = one.link.remote_source, two.link.remote_source
        self.assertTrue(first.dynamic and second.dynamic)
        self.assertTrue(first.address and second.address)
        self.assertNotEqual(first.address, second.address)
        self.send(self.sender(first.address), Message(body="mine"))
        self.assertEqual(one.accept().message.body, "mine")
        self.assertEqual(two.drain(10), [])
