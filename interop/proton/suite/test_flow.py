"""Credit, draining, browsing and order."""

from proton import Message

from scenario import Browse, Scenario


def bodies(arrived):
    return [a.message.body for a in arrived]


class Flow(Scenario):
    def setUp(self):
        super().setUp()
        self.queue = self.address()

    def fill(self, count, first=0):
        self.send(self.sender(self.queue), *(Message(body=i) for i in range(first, first + count)))

    def test_drain(self):
        consumer = self.consumer(self.queue)
        self.assertEqual(consumer.drain(10), [])
        self.fill(3)
        self.assertEqual(bodies(consumer.drain(2)), [0, 1])
        self.assertEqual(bodies(consumer.drain(10)), [2])
        self.fill(1, first=3)
        self.fence()
        self.assertEqual(len(consumer.inbox.arrived), 0, "a message came for credit that was drained")
        self.assertEqual(bodies(consumer.drain(1)), [3])

    def test_credit_of_one(self):
        self.fill(20)
        consumer = self.consumer(self.queue)
        for i in range(20):
            consumer.link.flow(1)
            got = consumer.receive()
            self.fence()
            self.assertEqual(len(consumer.inbox.arrived), 0, "more messages than credit")
            self.assertEqual(got.message.body, i)
            got.settle()
        self.assertEqual(consumer.drain(10), [])

    def test_credit_is_withdrawn(self):
        consumer = self.consumer(self.queue, credit=10)
        self.assertEqual(consumer.drain(0), [])
        self.fill(3)
        self.fence()
        self.assertEqual(len(consumer.inbox.arrived), 0, "a message came for credit that was drained")

    def test_browse(self):
        self.fill(3)
        for _ in range(2):
            browser = self.consumer(self.queue, Browse())
            self.assertEqual(browser.link.remote_source.distribution_mode, browser.link.source.DIST_MODE_COPY)
            seen = browser.drain(10)
            self.assertEqual(bodies(seen), [0, 1, 2])
            for arrived in seen:
                arrived.settle()
            self.assertEqual(browser.drain(10), [])
            browser.close()
        consumer = self.consumer(self.queue)
        for i in range(3):
            got = consumer.accept().message
            self.assertEqual((got.body, got.delivery_count), (i, 0))

    def test_priority(self):
        sender = self.sender(self.queue)
        for i in range(30):
            self.send(sender, Message(body=[i * 7 % 10, i], priority=i * 7 % 10))
        got = [tuple(body) for body in bodies(self.consumer(self.queue).drain(100))]
        self.assertEqual(len(got), 30)
        self.assertEqual(got, sorted(got, key=lambda body: (-body[0], body[1])))

    def test_two_hundred_sessions(self):
        connection = self.connection.conn
        links = []
        for i in range(200):
            session = connection.session()
            session.open()
            sender = session.sender("session-%d" % i)
            sender.target.address = "%s-%d" % (self.queue, i)
            sender.open()
            links.append((session, sender))
        active = sender.LOCAL_ACTIVE | sender.REMOTE_ACTIVE
        self.connection.wait(lambda: all(sender.state == active for _, sender in links))
        deliveries = [sender.send(Message(body=i)) for i, (_, sender) in enumerate(links)]
        self.connection.wait(lambda: all(delivery.settled for delivery in deliveries))
        for session, _ in links:
            session.close()
        self.connection.wait(lambda: all(session.state & session.REMOTE_CLOSED for session, _ in links))
        for i in range(200):
            consumer = self.consumer("%s-%d" % (self.queue, i))
            self.assertEqual(consumer.accept().message.body, i)
            consumer.close()
