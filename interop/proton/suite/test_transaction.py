"""Work that holds as a whole or not at all."""

import os
import socket

from proton import Delivery, Message
from proton.handlers import TransactionHandler
from proton.utils import BlockingConnection

from scenario import PATIENCE, URL, Scenario


class Work(TransactionHandler):
    """A transaction, declared on a connection of its own or of others."""

    def __init__(self, connection, settled=False):
        super().__init__()
        self.connection, self.said = connection, None
        self.transaction = connection.container.declare_transaction(
            connection.conn, handler=self, settle_before_discharge=settled)
        self.wait("declared")

    def wait(self, what):
        self.connection.wait(lambda: self.said, msg="transaction to be %s" % what)
        if self.said != what:
            raise AssertionError("transaction is %s, not %s" % (self.said, what))
        self.said = None

    def on_transaction_declared(self, event):
        self.said = "declared"

    def on_transaction_declare_failed(self, event):
        self.said = "not declared"

    def on_transaction_committed(self, event):
        self.said = "committed"

    def on_transaction_commit_failed(self, event):
        self.said = "refused"

    def on_transaction_aborted(self, event):
        self.said = "rolled back"

    def post(self, sender, *messages):
        """Posts, and waits until the broker has said what it makes of each if it holds."""
        deliveries = [self.transaction.send(sender.link, message) for message in messages]
        self.connection.wait(lambda: all(d.remote_state for d in deliveries), msg="outcomes of posts")

    def accept(self, *arrived):
        for a in arrived:
            self.transaction.accept(a.delivery)

    def retire(self, arrived, state):
        self.transaction.update(arrived.delivery, state)
        arrived.delivery.settle()

    def commit(self):
        self.transaction.commit()
        self.wait("committed")

    def roll_back(self):
        self.transaction.abort()
        self.wait("rolled back")

    def refused(self):
        self.transaction.commit()
        self.wait("refused")


class Transactions(Scenario):
    def setUp(self):
        super().setUp()
        self.queue = self.address()
        self.outside = self.connect()

    def bodies(self, queue):
        """Takes what there is, as pairs of body and delivery-count."""
        consumer = self.consumer(queue, connection=self.outside)
        came = consumer.drain(100)
        for a in came:
            a.settle()
        self.fence(self.outside)
        consumer.close()
        return [(a.message.body, a.message.delivery_count) for a in came]

    def test_transaction_commits(self):
        work = Work(self.connection)
        work.post(self.sender(self.queue), Message(body="1"), Message(body="2"))
        self.assertEqual(self.bodies(self.queue), [])
        work.commit()
        self.assertEqual(self.bodies(self.queue), [("1", 0), ("2", 0)])

        for settled in (False, True):
            self.send(self.sender(self.queue), Message(body="3"))
            work = Work(self.connection, settled)
            consumer = self.consumer(self.queue)
            work.accept(consumer.receive())
            work.commit()
            self.fence()
            consumer.close()
            self.assertEqual(self.bodies(self.queue), [])

    def test_transaction_rolls_back(self):
        """What was posted is gone, and what was accepted is back with one more attempt."""
        for settled in (False, True):
            queue = self.address()
            sender, consumer = self.sender(queue), self.consumer(queue)
            self.send(sender, Message(body="1"))
            for attempts in range(3):
                work = Work(self.connection, settled)
                work.post(sender, Message(body="never"))
                got = consumer.receive()
                self.assertEqual((got.message.body, got.message.delivery_count), ("1", attempts))
                work.accept(got)
                work.roll_back()
            work = Work(self.connection, settled)
            work.accept(consumer.receive())
            work.commit()
            self.fence()
            consumer.close()
            self.assertEqual(self.bodies(queue), [])

    def test_transaction_over_queues(self):
        other, dead = self.address(), "dead " + self.address()
        sender, consumer = self.sender(self.queue), self.consumer(self.queue)
        self.send(sender, Message(body="moved"), Message(id=dead, body="rejected"), Message(body="failed"))
        came = consumer.drain(3)
        work = Work(self.connection)
        work.post(self.sender(other), Message(body="moved"))
        work.accept(came[0])
        work.retire(came[1], Delivery.REJECTED)
        came[2].delivery.local.failed = True
        work.retire(came[2], Delivery.MODIFIED)
        self.assertEqual(self.bodies(other), [])
        work.commit()
        self.fence()
        consumer.close()
        self.assertEqual(self.bodies(other), [("moved", 0)])
        self.assertEqual(self.find("DLQ", dead).body, "rejected")
        self.assertEqual([body for body, _ in self.bodies(self.queue)], ["failed"])

    def test_transaction_refused_commit(self):
        """A message that can't be routed leaves the transaction no way but back."""
        consumer = self.consumer(self.queue)
        self.send(self.sender(self.queue), Message(body="1"))
        work = Work(self.connection)
        work.post(self.sender(self.queue), Message(body="never"))
        work.post(self.sender(None), Message(body="to nowhere"))
        work.accept(consumer.receive())
        work.refused()
        self.fence()
        consumer.close()
        self.assertEqual(self.bodies(self.queue), [("1", 1)])

    def test_transaction_ends_with_connection(self):
        self.send(self.sender(self.queue), Message(body="1"))
        for attempts, lost in enumerate((False, True)):
            connection = BlockingConnection(URL, timeout=PATIENCE)
            work = Work(connection)
            work.post(self.sender(self.queue, connection=connection), Message(body="never"))
            got = self.consumer(self.queue, connection=connection).receive()
            self.assertEqual(got.message.delivery_count, attempts)
            work.accept(got)
            self.fence(connection)
            if lost:
                cut(connection)
            else:
                connection.close()
        consumer = self.consumer(self.queue)
        self.assertEqual(consumer.receive().message.delivery_count, 2)
        consumer.close()


def cut(connection):
    """Ends a connection without a word."""
    with socket.socket(fileno=os.dup(connection.conn.transport._selectable.fileno())) as s:
        s.shutdown(socket.SHUT_RDWR)
