"""Specimens, written and read: see interop/foreign."""

import json
import os

from proton import Delivery, Message
from proton.utils import BlockingConnection

from scenario import PATIENCE, URL, Inbox


def say(**line):
    print(json.dumps(line), flush=True)


def write(address):
    """Sends what Proton makes of each specimen."""
    with open(os.environ["LETO_SPECIMENS"]) as file:
        specimens = json.load(file)
    connection = BlockingConnection(URL, timeout=PATIENCE)
    sender = connection.create_sender(address)
    for specimen in specimens:
        message = Message()
        message.decode(bytes.fromhex(specimen["encoded"]))
        delivery = sender.send(message)
        assert delivery.remote_state == Delivery.ACCEPTED, delivery.remote_state
        say(message=specimen["name"])
    connection.close()
    return True


def read(address, count):
    """Prints what comes: its bytes, and those that Proton makes of what it holds."""
    connection = BlockingConnection(URL, timeout=PATIENCE)
    inbox = Inbox()
    receiver = connection.create_receiver(address, credit=count, handler=inbox)  # unheld it would be collected
    for _ in range(count):
        connection.wait(lambda: inbox.arrived)
        arrived = inbox.arrived.popleft()
        say(raw=arrived.encoded.hex(), again=arrived.message.encode().hex())
        arrived.settle()
    receiver.link.handler = None
    receiver.close()
    connection.close()
    return True
