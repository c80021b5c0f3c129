package protonj2;

import static run.Scenarios.equal;
import static run.Scenarios.fresh;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.AdvancedMessage;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Tracker;
import org.apache.qpid.protonj2.types.Binary;
import org.apache.qpid.protonj2.types.Decimal128;
import org.apache.qpid.protonj2.types.Decimal32;
import org.apache.qpid.protonj2.types.Decimal64;
import org.apache.qpid.protonj2.types.Symbol;
import org.apache.qpid.protonj2.types.UnsignedByte;
import org.apache.qpid.protonj2.types.UnsignedInteger;
import org.apache.qpid.protonj2.types.UnsignedLong;
import org.apache.qpid.protonj2.types.UnsignedShort;
import org.apache.qpid.protonj2.types.messaging.AmqpSequence;
import org.apache.qpid.protonj2.types.messaging.AmqpValue;
import org.apache.qpid.protonj2.types.messaging.Data;
import org.apache.qpid.protonj2.types.messaging.Section;
import run.Scenarios;

/** Messages of every shape, large ones and many. */
final class Messages {
    static void add(Scenarios all) {
        all.add("every_type", Messages::types);
        all.add("every_body", Messages::bodies);
        all.add("ten_mebibytes", Messages::large);
        all.add("stream_of_ten_mebibytes", Messages::stream);
        all.add("thousand_in_order", Messages::thousand);
    }

    private static void types() throws Exception {
        Object[] values = {
            true, false, UnsignedByte.valueOf((byte) -1), UnsignedShort.valueOf((short) -1), UnsignedInteger.valueOf(0), UnsignedInteger.valueOf(-1),
            UnsignedLong.valueOf(0), UnsignedLong.valueOf(-1L), Byte.MIN_VALUE, Short.MIN_VALUE, Integer.MIN_VALUE, -1, Long.MIN_VALUE, 128L,
            1.5f, Float.NaN, Math.PI, Double.NEGATIVE_INFINITY, new Decimal32(0x32800001), new Decimal64(0x31C0000000000001L),
            new Decimal128(1, 2), 'x', UUID.randomUUID(), new Binary(new byte[256]), "", "grüße ☃ \uD83D\uDE80",
            Symbol.valueOf("a.symbol"), List.of("a", 1, List.of(true)), Map.of("k", Map.of("l", UnsignedByte.valueOf((byte) 1)))};
        try (var peer = new Peer()) {
            String address = fresh("types");
            var sender = peer.sender(address);
            var receiver = peer.receiver(address);
            for (Object value : values) {
                AdvancedMessage<Object> m = AdvancedMessage.create();
                m.addBodySection(new AmqpValue<>(value));
                if (!(value instanceof List) && !(value instanceof Map)) {
                    m.property("p", value);
                }
                m.annotation("x-opt-a", value);
                Peer.send(sender, m);
                var got = Peer.accept(receiver);
                equal(got.body(), value);
                equal(got.annotation("x-opt-a"), value);
                if (got.hasProperties()) {
                    equal(got.property("p"), value);
                }
            }
        }
    }

    private static void bodies() throws Exception {
        byte[] one = {1}, none = {};
        List<List<Section<?>>> shapes = List.of(
            List.of(new Data(one)), List.of(new Data(one), new Data(none), new Data(one)),
            List.of(new AmqpSequence<>(List.of("a", 1))), List.of(new AmqpSequence<>(List.of("a")), new AmqpSequence<>(List.of(1))),
            List.of(new AmqpValue<>("v")));
        try (var peer = new Peer()) {
            String address = fresh("bodies");
            var sender = peer.sender(address);
            var receiver = peer.receiver(address);
            for (var shape : shapes) {
                AdvancedMessage<Object> m = AdvancedMessage.create();
                for (var section : shape) {
                    m.addBodySection(section);
                }
                m.footer("x-opt-f", 1);
                Peer.send(sender, m);
                var got = Peer.accept(receiver).toAdvancedMessage();
                equal(List.copyOf(got.bodySections()).toString(), shape.toString());
                equal(got.footer("x-opt-f"), 1);
            }
        }
    }

    private static byte[] random() {
        byte[] body = new byte[10 << 20];
        new Random(1).nextBytes(body);
        return body;
    }

    private static void large() throws Exception {
        byte[] body = random();
        try (var peer = new Peer()) {
            String address = fresh("large");
            Peer.send(peer.sender(address), Message.create(body));
            equal(Peer.accept(peer.receiver(address)).body(), body);
        }
    }

    /** Sent piece by piece, and read while it arrives. */
    private static void stream() throws Exception {
        byte[] body = random();
        try (var peer = new Peer()) {
            String address = fresh("stream");
            var message = peer.connection.openStreamSender(address).beginMessage();
            try (var out = message.body()) {
                for (int at = 0; at < body.length; at += 1 << 20) {
                    out.write(body, at, 1 << 20);
                }
            }
            message.tracker().awaitAccepted(Scenarios.PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            var delivery = peer.connection.openStreamReceiver(address).receive(Scenarios.PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            equal(delivery.message().body().readAllBytes(), body);
            delivery.accept();
        }
    }

    private static void thousand() throws Exception {
        try (var peer = new Peer()) {
            String address = fresh("thousand");
            var sender = peer.sender(address);
            var trackers = new ArrayList<Tracker>();
            for (int i = 0; i < 1000; i++) {
                trackers.add(sender.send(Message.create((Object) i)));
            }
            for (var tracker : trackers) {
                tracker.awaitAccepted(Scenarios.PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            }
            var receiver = peer.receiver(address, Peer.manual().creditWindow(100).autoAccept(true).autoSettle(true));
            for (int i = 0; i < 1000; i++) {
                equal(Peer.next(receiver).message().body(), i);
            }
        }
    }
}
