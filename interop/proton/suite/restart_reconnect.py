"""The broker is killed and comes back."""

import json
import os
import sys
import unittest

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Backoff, Container

URL = os.environ["LETO_AMQP_URL"]
COUNT, BEFORE = 50, 10


class Application(MessagingHandler):
    """Sends COUNT messages, takes some, has the broker restarted, sends another one, and takes the rest.

    Proton connects again by itself, with all links.
    """

    def __init__(self, queue):
        super().__init__(prefetch=0, auto_accept=False)
        self.queue = queue
        self.sent = self.confirmed = self.taken = self.opened = 0
        self.most = COUNT
        self.came = []
        self.late = False

    def on_start(self, event):
        self.connection = event.container.connect(URL, reconnect=Backoff(initial=0.05, max_delay=0.5))
        self.sender = event.container.create_sender(self.connection, self.queue, name="out")
        self.receiver = event.container.create_receiver(self.connection, self.queue, name="in")
        self.patience = event.container.schedule(30, self)

    def on_connection_opened(self, event):
        self.opened += 1
        if self.opened == 2:
            self.most = COUNT + 1

    def on_sendable(self, event):
        while event.sender.credit and self.sent < self.most:
            event.sender.send(Message(body=self.sent, durable=True))
            self.sent += 1

    def on_accepted(self, event):
        self.confirmed += 1
        if self.confirmed == COUNT:
            self.receiver.flow(BEFORE)
        elif self.confirmed == COUNT + 1:
            self.receiver.flow(COUNT + 1)

    def on_message(self, event):
        self.came.append(event.message.body)
        event.delivery.update(event.delivery.ACCEPTED)  # the broker settles it when that is stored
        if len(self.came) > COUNT:
            event.container.schedule(0.3, self)

    def on_settled(self, event):
        if event.delivery.link.is_receiver:
            event.delivery.settle()
            self.taken += 1
            if self.taken == BEFORE:
                print(json.dumps({"ask": "restart"}), flush=True)
                sys.stdin.readline()

    def on_timer_task(self, event):
        self.late = len(self.came) <= COUNT
        self.patience.cancel()
        self.connection.close()


class Restarts(unittest.TestCase):
    def test_reconnect_after_restart(self):
        application = Application("proton-restart-%d" % os.getpid())
        Container(application).run()
        self.assertEqual(application.came, list(range(COUNT + 1)), "late: %s" % application.late)
        self.assertEqual(application.opened, 2)
