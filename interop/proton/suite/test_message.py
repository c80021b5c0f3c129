"""Messages of every shape arrive with the bytes that were sent."""

import hashlib
import random
import uuid

from proton import Array, Data, Described, Message, UNDESCRIBED, byte, char, decimal32, decimal64, decimal128, float32, \
    int32, short, symbol, timestamp, ubyte, uint, ulong, ushort
from proton.handlers import MessagingHandler
from proton.reactor import Container

from scenario import ANNOTATIONS, APPLICATION_PROPERTIES, DATA, DELIVERY_ANNOTATIONS, FOOTER, HEADER, PATIENCE, \
    PROPERTIES, SEQUENCE, URL, VALUE, Encoded, Scenario, kept, section, sections

SIMPLE = {
    "true": True, "false": False,
    "ubyte": ubyte(0), "ubyte max": ubyte(255),
    "ushort": ushort(0), "ushort max": ushort(65535),
    "uint 0": uint(0), "uint 255": uint(255), "uint 256": uint(256), "uint max": uint(2**32 - 1),
    "ulong 0": ulong(0), "ulong 255": ulong(255), "ulong 256": ulong(256), "ulong max": ulong(2**64 - 1),
    "byte min": byte(-128), "byte max": byte(127),
    "short min": short(-2**15), "short max": short(2**15 - 1),
    "int min": int32(-2**31), "int -1": int32(-1), "int 128": int32(128), "int max": int32(2**31 - 1),
    "long min": -2**63, "long -1": -1, "long 128": 128, "long max": 2**63 - 1,
    "float": float32(1.5), "float inf": float32("inf"), "float nan": float32("nan"),
    "double": 3.141592653589793, "double -inf": float("-inf"), "double nan": float("nan"),
    "decimal32": decimal32(0x32800001), "decimal64": decimal64(0x31C0000000000001), "decimal128": decimal128(bytes(range(16))),
    "char": char("x"), "char beyond BMP": char("\U0001F680"),
    "timestamp": timestamp(1234567890123), "timestamp 0": timestamp(0), "timestamp -1": timestamp(-1),
    "timestamp year 9999": timestamp(253402300799999), "timestamp max": timestamp(2**63 - 1), "timestamp min": timestamp(-2**63),
    "uuid": uuid.UUID(int=2**127 + 1),
    "binary empty": b"", "binary 255": b"\xff" * 255, "binary 256": b"\x00" * 256,
    "string empty": "", "string utf-8": "grüße ☃ \U0001F680", "string 255": "s" * 255, "string 256": "s" * 256,
    "symbol": symbol("a.symbol"), "symbol 256": symbol("y" * 256),
}

COMPOUND = {
    "list empty": [], "list": ["a", int32(1), None, [True]],
    "map empty": {}, "map": {symbol("z"): 1, symbol("a"): {"k": [ubyte(1)]}},
    "described": Described(symbol("app:point:list"), [1, 2]), "described by ulong": Described(ulong(2**40), "x"),
    "array empty": Array(UNDESCRIBED, Data.SYMBOL),
    "array of bool": Array(UNDESCRIBED, Data.BOOL, True, False),
    "array of null": Array(UNDESCRIBED, Data.NULL, None, None),
    "array of ubyte": Array(UNDESCRIBED, Data.UBYTE, ubyte(1), ubyte(2)),
    "array of uint": Array(UNDESCRIBED, Data.UINT, uint(0), uint(2**32 - 1)),
    "array of ulong": Array(UNDESCRIBED, Data.ULONG, ulong(0), ulong(2**64 - 1)),
    "array of long": Array(UNDESCRIBED, Data.LONG, 1, -1),
    "array of double": Array(UNDESCRIBED, Data.DOUBLE, 1.5, float("inf")),
    "array of symbol": Array(UNDESCRIBED, Data.SYMBOL, symbol("x"), symbol("y" * 300)),
    "array of string": Array(UNDESCRIBED, Data.STRING, "", "é"),
    "array of list": Array(UNDESCRIBED, Data.LIST, [], [1]),
    "array of map": Array(UNDESCRIBED, Data.MAP, {"k": 1}),
    "array of array": Array(UNDESCRIBED, Data.ARRAY, Array(UNDESCRIBED, Data.INT, int32(1))),
    "array of uuid": Array(UNDESCRIBED, Data.UUID, uuid.UUID(int=1)),
    "array of described": Array(symbol("app:x:int"), Data.INT, int32(1), int32(2)),
}


class Messages(Scenario):
    def exchange(self, messages):
        address = self.address()
        sender, consumer = self.sender(address), self.consumer(address)
        for name, encoded in messages.items():
            with self.subTest(name):
                self.send(sender, Encoded(encoded))
                arrived = consumer.accept().encoded
                self.assertEqual(kept(arrived), kept(encoded))
                self.assertNotIn(DELIVERY_ANNOTATIONS, sections(arrived))

    def test_body_data(self):
        self.exchange({
            "one": section(DATA, b"data"),
            "many": section(DATA, b"one") + section(DATA, b"") + section(DATA, b"three"),
            "empty": section(DATA, b""),
            "sixty KiB": section(DATA, bytes(range(256)) * 240),
        })

    def test_body_sequence(self):
        self.exchange({
            "one": section(SEQUENCE, ["a", 1, None]),
            "many": section(SEQUENCE, ["a"]) + section(SEQUENCE, []) + section(SEQUENCE, [[ubyte(1)]]),
            "empty": section(SEQUENCE, []),
        })

    def test_body_value(self):
        self.exchange({name: section(VALUE, value) for name, value in {**SIMPLE, **COMPOUND, "null": None}.items()})

    def test_body_none(self):
        self.exchange({"properties only": section(PROPERTIES, ["an id"])})

    def test_application_properties(self):
        self.exchange({name: section(APPLICATION_PROPERTIES, {"p": value}) + section(VALUE, 1)
                       for name, value in {**SIMPLE, "null": None}.items()})

    def test_application_properties_order(self):
        names = ["p%03d" % i for i in range(300)]
        random.Random(1).shuffle(names)
        self.exchange({"three hundred": section(APPLICATION_PROPERTIES, {name: int(name[1:]) for name in names}) + section(VALUE, 1)})

    def test_message_annotations(self):
        self.exchange({name: section(ANNOTATIONS, {symbol("x-opt-a"): value}) + section(VALUE, 1)
                       for name, value in {**SIMPLE, **COMPOUND, "null": None}.items()})

    def test_footer(self):
        self.exchange({name: section(VALUE, 1) + section(FOOTER, {symbol("x-opt-f"): value})
                       for name, value in {**SIMPLE, **COMPOUND}.items()})

    def test_message_ids(self):
        ids = {"string": "an id", "ulong": ulong(2**64 - 1), "ulong 0": ulong(0), "uuid": uuid.UUID(int=7), "binary": b"\x00\x01\xff"}
        self.exchange({name: section(PROPERTIES, [id, None, None, None, None, id]) + section(VALUE, 1) for name, id in ids.items()})
        address = self.address()
        sender, consumer = self.sender(address), self.consumer(address)
        for name, id in ids.items():
            with self.subTest("decoded " + name):
                self.send(sender, Message(id=id, correlation_id=id, body=1))
                got = consumer.accept().message
                self.assertEqual((got.id, got.correlation_id), (id, id))

    def test_all_properties(self):
        self.exchange({
            "all": section(PROPERTIES, [
                "id", b"user", "to", "subject", "reply", "correlation", symbol("text/plain"), symbol("gzip"),
                timestamp(253402300799999), timestamp(1), "group", uint(2**32 - 1), "other"]) + section(DATA, b"x"),
            "none": section(PROPERTIES, []) + section(DATA, b"x"),
            "nulls": section(PROPERTIES, [None] * 13) + section(DATA, b"x"),
        })

    def test_every_section(self):
        self.exchange({"all nine": b"".join([
            section(HEADER, [True, ubyte(7), uint(3600000), True, uint(3)]),
            section(DELIVERY_ANNOTATIONS, {symbol("x-opt-hop"): "only this far"}),
            section(ANNOTATIONS, {symbol("x-opt-b"): "first", symbol("x-opt-a"): "second"}),
            section(PROPERTIES, ["id"]),
            section(APPLICATION_PROPERTIES, {"z": 1, "a": 2}),
            section(DATA, b"x" * 3000),
            section(FOOTER, {symbol("x-opt-sum"): ulong(7)}),
        ])})

    def test_symbolic_descriptors(self):
        def named(name, value):
            data = Data()
            data.put_object(Described(symbol(name), value))
            return data.encode()

        encoded = named("amqp:header:list", [True]) + named("amqp:properties:list", ["id"]) + named("amqp:data:binary", b"x")
        address = self.address()
        self.send(self.sender(address), Encoded(encoded))
        arrived = self.consumer(address).accept().encoded
        self.assertTrue(arrived.endswith(named("amqp:properties:list", ["id"]) + named("amqp:data:binary", b"x")), arrived)

    def test_header(self):
        address = self.address()
        self.send(self.sender(address), Message(body=1, durable=True, priority=7, ttl=3600, delivery_count=3, first_acquirer=True))
        got = self.consumer(address).accept().message
        self.assertEqual((got.durable, got.priority, got.delivery_count, got.first_acquirer), (True, 7, 0, True))
        self.assertGreater(got.ttl, 0)
        self.assertLessEqual(got.ttl, 3600)

    def test_ten_mebibytes(self):
        body = random.Random(1).randbytes(10 << 20)
        address = self.address()
        self.send(self.sender(address), Message(body=body, inferred=True))
        got = self.consumer(address).accept().message.body
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(body).digest())

    def test_frames_of_512_bytes(self):
        address = self.address()
        small = self.connect(max_frame_size=512)
        here, there = self.sender(address), self.sender(address, connection=small)
        consumer = self.consumer(address, connection=small)
        for size in (0, 1, 400, 430, 440, 450, 460, 470, 480, 490, 500, 511, 512, 513, 1000, 300000):
            for sender in (here, there):
                encoded = section(DATA, b"x" * size)
                self.send(sender, Encoded(encoded))
                self.assertEqual(kept(consumer.accept().encoded), kept(encoded), size)

    def test_thousand_in_order(self):
        exchange = Exchange(self.address(), 1000)
        Container(exchange).run()
        self.assertEqual(exchange.errors, [])
        self.assertEqual(exchange.got, list(range(1000)))
        self.assertEqual(exchange.confirmed, 1000)


class Exchange(MessagingHandler):
    """Sends and receives in one event loop, as Proton applications do."""

    def __init__(self, address, count):
        super().__init__(prefetch=100)
        self.address, self.count = address, count
        self.sent = self.confirmed = 0
        self.got, self.errors = [], []

    def on_start(self, event):
        self.timer = event.container.schedule(PATIENCE, self)
        self.connection = event.container.connect(URL, reconnect=False)
        event.container.create_receiver(self.connection, self.address)
        event.container.create_sender(self.connection, self.address)

    def on_sendable(self, event):
        while event.sender.credit and self.sent < self.count:
            event.sender.send(Message(id=self.sent, body=self.sent))
            self.sent += 1

    def on_accepted(self, event):
        self.confirmed += 1
        self.finish()

    def on_message(self, event):
        self.got.append(event.message.body)
        self.finish()

    def finish(self):
        if self.confirmed == self.count and len(self.got) == self.count:
            self.timer.cancel()
            self.connection.close()

    def on_timer_task(self, event):
        self.errors.append("time is up: %d sent, %d confirmed, %d received" % (self.sent, self.confirmed, len(self.got)))
        self.connection.close()

    def on_error(self, event):
        self.errors.append(str(event.context))

    def on_transport_error(self, event):
        self.errors.append(str(event.transport.condition))
