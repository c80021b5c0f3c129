package jms;

import static run.Scenarios.equal;

import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.ObjectMessage;
import jakarta.jms.StreamMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import run.Scenarios;

/** Every kind of message and every type in it. */
final class Messages {
    private static final Object[] VALUES = {
        true, false, Byte.MIN_VALUE, Short.MIN_VALUE, Integer.MIN_VALUE, -1, 0, 255, Long.MAX_VALUE, Long.MIN_VALUE,
        1.5f, Float.NEGATIVE_INFINITY, Math.PI, Double.NaN, "", "grüße ☃ \uD83D\uDE80", "s".repeat(256)};

    static void add(Scenarios all) {
        all.add("text", Messages::text);
        all.add("bytes", Messages::bytes);
        all.add("map", Messages::map);
        all.add("stream", Messages::stream);
        all.add("object", Messages::object);
        all.add("no_body", Messages::nothing);
        all.add("properties", Messages::properties);
        all.add("headers", Messages::headers);
        all.add("ten_mebibytes", Messages::large);
        all.add("thousand_in_order", Messages::thousand);
    }

    private interface Fill<M> {
        M make(Peer peer) throws Exception;
    }

    private interface Check<M> {
        void look(M message) throws Exception;
    }

    @SuppressWarnings("unchecked")
    private static <M extends Message> void exchange(Fill<M> fill, Check<M> check) throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("message");
            peer.session.createProducer(queue).send(fill.make(peer));
            check.look((M) Peer.receive(peer.consumer(queue)));
        }
    }

    private static void text() throws Exception {
        for (String text : new String[] {"", "text", "grüße ☃ \uD83D\uDE80", "s".repeat(100_000)}) {
            exchange(peer -> peer.session.createTextMessage(text), message -> equal(message.getText(), text));
        }
    }

    private static void bytes() throws Exception {
        Messages.<BytesMessage>exchange(peer -> {
            var m = peer.session.createBytesMessage();
            m.writeLong(Long.MIN_VALUE);
            m.writeUTF("grüße");
            m.writeBytes(new byte[] {0, -1});
            m.writeChar('x');
            return m;
        }, m -> {
            equal(m.readLong(), Long.MIN_VALUE);
            equal(m.readUTF(), "grüße");
            byte[] two = new byte[2];
            equal(m.readBytes(two), 2);
            equal(two, new byte[] {0, -1});
            equal(m.readChar(), 'x');
        });
    }

    private static void map() throws Exception {
        Messages.<MapMessage>exchange(peer -> {
            var m = peer.session.createMapMessage();
            for (int i = 0; i < VALUES.length; i++) {
                m.setObject("v" + i, VALUES[i]);
            }
            m.setChar("char", 'ß');
            m.setBytes("bytes", new byte[] {1, 2});
            m.setObject("null", null);
            return m;
        }, m -> {
            for (int i = 0; i < VALUES.length; i++) {
                equal(m.getObject("v" + i), VALUES[i]);
            }
            equal(m.getChar("char"), 'ß');
            equal(m.getBytes("bytes"), new byte[] {1, 2});
            equal(m.itemExists("null"), true);
            equal(m.getObject("null"), null);
        });
    }

    private static void stream() throws Exception {
        Messages.<StreamMessage>exchange(peer -> {
            var m = peer.session.createStreamMessage();
            for (Object value : VALUES) {
                m.writeObject(value);
            }
            m.writeChar('ß');
            m.writeBytes(new byte[] {1, 2});
            return m;
        }, m -> {
            for (Object value : VALUES) {
                equal(m.readObject(), value);
            }
            equal(m.readChar(), 'ß');
            equal(m.readObject(), new byte[] {1, 2});
        });
    }

    private static void object() throws Exception {
        var list = new ArrayList<>(List.of("a", 1, 2L));
        for (boolean typed : new boolean[] {false, true}) {
            try (var peer = new Peer("&jms.deserializationPolicy.allowList=java.util,java.lang", jakarta.jms.Session.AUTO_ACKNOWLEDGE)) {
                var queue = peer.queue("object");
                var m = peer.session.createObjectMessage();
                if (typed) {
                    m.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
                }
                m.setObject(list);
                peer.session.createProducer(queue).send(m);
                equal(((ObjectMessage) Peer.receive(peer.consumer(queue))).getObject(), list);
            }
        }
    }

    private static void nothing() throws Exception {
        exchange(peer -> {
            var m = peer.session.createMessage();
            m.setStringProperty("p", "q");
            return m;
        }, m -> equal(m.getStringProperty("p"), "q"));
    }

    private static void properties() throws Exception {
        exchange(peer -> {
            var m = peer.session.createMessage();
            for (int i = 0; i < VALUES.length; i++) {
                m.setObjectProperty("v" + i, VALUES[i]);
            }
            return m;
        }, m -> {
            for (int i = 0; i < VALUES.length; i++) {
                equal(m.getObjectProperty("v" + i), VALUES[i]);
            }
        });
    }

    private static void headers() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("headers");
            var producer = peer.session.createProducer(queue);
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            producer.setPriority(7);
            var sent = peer.session.createTextMessage("x");
            sent.setJMSCorrelationID("correlation");
            sent.setJMSReplyTo(peer.session.createTopic("reply"));
            sent.setJMSType("type");
            sent.setStringProperty("JMSXGroupID", "group");
            sent.setIntProperty("JMSXGroupSeq", 3);
            producer.send(sent);
            var got = Peer.receive(peer.consumer(queue));
            equal(got.getJMSDeliveryMode(), DeliveryMode.NON_PERSISTENT);
            equal(got.getJMSPriority(), 7);
            equal(got.getJMSMessageID(), sent.getJMSMessageID());
            equal(got.getJMSTimestamp(), sent.getJMSTimestamp());
            equal(got.getJMSCorrelationID(), "correlation");
            equal(got.getJMSReplyTo(), peer.session.createTopic("reply"));
            equal(got.getJMSType(), "type");
            equal(got.getJMSDestination(), queue);
            equal(got.getJMSRedelivered(), false);
            equal(got.getIntProperty("JMSXDeliveryCount"), 1);
            equal(got.getStringProperty("JMSXGroupID"), "group");
            equal(got.getIntProperty("JMSXGroupSeq"), 3);
        }
    }

    private static void large() throws Exception {
        byte[] body = new byte[10 << 20];
        new Random(1).nextBytes(body);
        Messages.<BytesMessage>exchange(peer -> {
            var m = peer.session.createBytesMessage();
            m.writeBytes(body);
            return m;
        }, m -> {
            equal(m.getBodyLength(), (long) body.length);
            equal(m.getBody(byte[].class), body);
        });
    }

    private static void thousand() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("thousand");
            var left = new CountDownLatch(1000);
            var wrong = new AtomicReference<Exception>();
            var producer = peer.session.createProducer(queue);
            for (int i = 0; i < 1000; i++) {
                producer.send(peer.session.createTextMessage("" + i), new CompletionListener() {
                    @Override
                    public void onCompletion(Message m) {
                        left.countDown();
                    }

                    @Override
                    public void onException(Message m, Exception e) {
                        wrong.set(e);
                        left.countDown();
                    }
                });
            }
            equal(left.await(Scenarios.PATIENCE_MILLIS, TimeUnit.MILLISECONDS), true);
            equal(wrong.get(), null);
            var consumer = peer.consumer(queue);
            for (int i = 0; i < 1000; i++) {
                Peer.texts(consumer, i);
            }
        }
    }
}
