"""Connections as such."""

from proton import Message, Timeout, symbol

from scenario import PATIENCE, Scenario


class Connections(Scenario):
    def test_open(self):
        conn = self.connection.conn
        self.assertTrue(conn.remote_container)
        self.assertEqual(conn.remote_properties[symbol("product")], "leto")

    def test_without_sasl(self):
        other = self.connect(sasl_enabled=False)
        self.assertTrue(other.conn.remote_container)

    def test_anonymous(self):
        other = self.connect(sasl_enabled=True, allowed_mechs="ANONYMOUS")
        self.assertTrue(other.conn.remote_container)

    def test_heartbeats(self):
        idle = self.connect(heartbeat=2)
        transport = idle.conn.transport
        before = transport.frames_input
        with self.assertRaises(Timeout):
            idle.wait(lambda: idle.disconnected, timeout=3)
        self.assertGreaterEqual(transport.frames_input - before, 2)
        queue = self.address()
        self.send(self.sender(queue, connection=idle), Message(body="alive"))
        self.assertEqual(self.consumer(queue, connection=idle).accept().message.body, "alive")

    def test_same_container_twice(self):
        one, two = (self.connect(container_id="twins") for _ in range(2))
        for connection in (one, two):
            queue = self.address()
            self.send(self.sender(queue, connection=connection), Message(body=1))
            self.assertEqual(self.consumer(queue, connection=connection).accept().message.body, 1)

    def test_connections_in_turn(self):
        queue = self.address()
        for i in range(30):
            connection = self.connect()
            self.send(self.sender(queue, connection=connection), Message(body=i))
            connection.close()
        consumer = self.consumer(queue)
        self.assertEqual([a.message.body for a in consumer.drain(PATIENCE * 10)], list(range(30)))
