"""What the scenarios share: a connection, links, and messages as bytes."""

import collections
import itertools
import os
import unittest

from proton import SSL, Array, Data, Delivery, Described, Handler, Message, UNDESCRIBED, symbol, ulong
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, LinkDetached

URL = os.environ["LETO_AMQP_URL"]
PATIENCE = 20  # seconds that any single wait may take

# Nothing here speaks TLS, and every container would spend 60 ms on reading certificates.
SSL.present = staticmethod(lambda: False)

serial = itertools.count(1)


class Scenario(unittest.TestCase):
    """A test with a connection of its own and addresses that nobody else uses."""

    def setUp(self):
        self.fences = {}
        self.connection = self.connect()

    def connect(self, **options):
        connection = BlockingConnection(URL, timeout=PATIENCE, **options)
        self.addCleanup(connection.close)
        return connection

    def address(self):
        return "proton-%s-%d" % (self.id().rpartition(".")[2], next(serial))

    def sender(self, address, *options, connection=None):
        connection = connection or self.connection
        return connection.create_sender(address, name="sender-%d" % next(serial), options=list(options))

    def consumer(self, address, *options, connection=None, credit=0, dynamic=False):
        return Consumer(self, connection or self.connection, address, list(options), credit, dynamic)

    def send(self, sender, *messages):
        for message in messages:
            delivery = sender.send(message)
            self.assertEqual(delivery.remote_state or Delivery.ACCEPTED, Delivery.ACCEPTED)

    def fence(self, connection=None):
        """Goes to the broker and back, so that both have seen what the other sent before."""
        connection = connection or self.connection
        if connection not in self.fences:
            self.fences[connection] = self.sender("fence", connection=connection)
        self.send(self.fences[connection], Message(body="fence", ttl=1))

    def find(self, queue, id):
        """Browses a queue that all scenarios share until the message with the id is there."""
        found = []

        def there():
            browser = self.consumer(queue, Browse())
            found.extend(a.message for a in browser.drain(10000) if a.message.id == id)
            browser.close()
            return found

        for _ in range(200):
            if there():
                return found[0]
            self.pause(0.05)
        self.fail("message %r doesn't come to %s" % (id, queue))

    def pause(self, seconds):
        """Lets the connection go on for a while."""
        ended = []

        class Timer(Handler):
            def on_timer_task(self, event):
                ended.append(event)

        self.connection.container.schedule(seconds, Timer())
        self.connection.wait(lambda: ended)


class Arrived:
    """A message that came: the delivery, its bytes, and what Proton makes of them."""

    def __init__(self, delivery, encoded):
        self.delivery = delivery
        self.encoded = encoded
        self.message = Message()
        self.message.decode(encoded)

    def settle(self, state=Delivery.ACCEPTED):
        self.delivery.update(state)
        self.delivery.settle()

    def modify(self, failed=False, undeliverable=False, annotations=None):
        local = self.delivery.local
        local.failed, local.undeliverable, local.annotations = failed, undeliverable, annotations
        self.settle(Delivery.MODIFIED)

    def reject(self, condition):
        self.delivery.local.condition = condition
        self.settle(Delivery.REJECTED)


class Inbox(Handler):
    """Takes whole deliveries off a receiving link."""

    def __init__(self):
        super().__init__()
        self.arrived = collections.deque()

    def on_delivery(self, event):
        delivery = event.delivery
        if delivery.link.is_receiver and delivery.readable and not delivery.partial:
            encoded = delivery.link.recv(delivery.pending) or b""
            delivery.link.advance()
            self.arrived.append(Arrived(delivery, encoded))

    def on_link_remote_close(self, event):
        event.link.close()
        raise LinkDetached(event.link)


class Consumer:
    """A receiving link whose credit is the scenario's business."""

    def __init__(self, scenario, connection, address, options, credit, dynamic):
        self.scenario, self.connection = scenario, connection
        self.inbox = Inbox()
        self.receiver = connection.create_receiver(
            address, credit=credit, dynamic=dynamic, handler=self.inbox, name="receiver-%d" % next(serial), options=options)
        self.link = self.receiver.link

    def receive(self):
        """Waits for a message; grants credit for it if there is none left."""
        if not self.inbox.arrived and not self.link.credit:
            self.link.flow(1)
        self.connection.wait(lambda: self.inbox.arrived, msg="receiving")
        return self.inbox.arrived.popleft()

    def accept(self):
        arrived = self.receive()
        arrived.settle()
        return arrived

    def drain(self, credit):
        """Grants credit, drains it, and returns what came.

        Proton writes flows before dispositions; the fence has the dispositions out first.
        """
        self.scenario.fence(self.connection)
        self.link.drain(credit)
        self.connection.wait(lambda: not self.link.draining(), msg="draining")
        self.link.drained()
        self.link.drain_mode = False
        came = list(self.inbox.arrived)
        self.inbox.arrived.clear()
        return came

    def close(self):
        self.link.handler = None
        self.receiver.close()


class Encoded:
    """Sends bytes as they are."""

    def __init__(self, encoded):
        self.encoded = encoded

    def send(self, sender, tag=None):
        delivery = sender.delivery(tag or sender.delivery_tag())
        sender.stream(self.encoded)
        sender.advance()
        if sender.snd_settle_mode == sender.SND_SETTLED:
            delivery.settle()
        return delivery


class Capability(LinkOption):
    """Puts capabilities on the terminus at the broker."""

    def __init__(self, *names):
        self.names = [symbol(name) for name in names]

    def apply(self, link):
        terminus = link.target if link.is_sender else link.source
        terminus.capabilities.put_object(Array(UNDESCRIBED, Data.SYMBOL, *self.names))


class Browse(LinkOption):
    def apply(self, link):
        link.source.distribution_mode = link.source.DIST_MODE_COPY


class Mode(LinkOption):
    """Sets the settle modes; None leaves one as it is."""

    def __init__(self, snd=None, rcv=None):
        self.snd, self.rcv = snd, rcv

    def apply(self, link):
        if self.snd is not None:
            link.snd_settle_mode = self.snd
        if self.rcv is not None:
            link.rcv_settle_mode = self.rcv


HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA, SEQUENCE, VALUE, FOOTER = range(0x70, 0x79)


def section(code, value):
    """One section of a message, encoded."""
    data = Data()
    data.put_object(Described(ulong(code), value))
    return data.encode()


def sections(encoded):
    """The sections of an encoded message: code -> bytes, equal ones joined."""
    found = collections.defaultdict(bytes)
    while encoded:
        data = Data()
        size = data.decode(encoded)
        data.rewind()
        data.next()
        found[int(data.get_py_described().descriptor)] += encoded[:size]
        encoded = encoded[size:]
    return found


KEPT = (ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA, SEQUENCE, VALUE, FOOTER)


def kept(encoded):
    """What has to arrive as it was sent."""
    found = sections(encoded)
    return {code: found[code].hex(" ") for code in KEPT if found[code]}
