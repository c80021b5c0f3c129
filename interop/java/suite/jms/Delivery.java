package jms;

import static run.Scenarios.equal;

import jakarta.jms.Session;
import run.Scenarios;

/** Credit, draining, browsing and order. */
final class Delivery {
    static void add(Scenarios all) {
        all.add("drain", Delivery::drain);
        all.add("credit_of_one", Delivery::creditOfOne);
        all.add("browse", Delivery::browse);
        all.add("priority", Delivery::priority);
        all.add("listener", Delivery::listener);
    }

    /** With a prefetch of 0 every receive grants a credit, and drains it when its time is up. */
    private static void drain() throws Exception {
        try (var peer = new Peer("&jms.prefetchPolicy.all=0", Session.AUTO_ACKNOWLEDGE)) {
            var queue = peer.queue("drain");
            var consumer = peer.consumer(queue);
            equal(consumer.receiveNoWait(), null);
            equal(consumer.receive(50), null);
            peer.send(queue, 1, 2, 3);
            var other = peer.consumer(queue);
            Peer.texts(consumer, 1);
            Peer.texts(other, 2);
            Peer.texts(consumer, 3);
            equal(other.receiveNoWait(), null);
        }
    }

    private static void creditOfOne() throws Exception {
        try (var peer = new Peer("&jms.prefetchPolicy.all=1", Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("one");
            var consumer = peer.consumer(queue);
            for (int i = 0; i < 20; i++) {
                peer.send(queue, i);
            }
            for (int i = 0; i < 20; i++) {
                var got = Peer.receive(consumer);
                equal(Peer.text(got), "" + i);
                got.acknowledge();
            }
            Peer.empty(consumer);
        }
    }

    private static void browse() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("browse");
            equal(peer.browse(queue).size(), 0);
            peer.send(queue, 1, 2, 3);
            for (int i = 0; i < 2; i++) {
                var seen = peer.browse(queue);
                equal(seen.size(), 3);
                for (int j = 0; j < 3; j++) {
                    equal(Peer.text(seen.get(j)), "" + (j + 1));
                }
            }
            try (var consumer = peer.consumer(queue)) {
                var first = Peer.receive(consumer);
                equal(Peer.text(first), "1");
                equal(first.getJMSRedelivered(), false);
                Peer.texts(consumer, 2, 3);
            }
        }
    }

    private static void priority() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("priority");
            var producer = peer.session.createProducer(queue);
            for (int i = 0; i < 30; i++) {
                producer.setPriority(i * 7 % 10);
                producer.send(peer.session.createTextMessage(i * 7 % 10 + " " + (100 + i)));
            }
            var consumer = peer.consumer(queue);
            String last = null;
            for (int i = 0; i < 30; i++) {
                String text = Peer.text(Peer.receive(consumer));
                if (last != null && (last.charAt(0) < text.charAt(0) || last.charAt(0) == text.charAt(0) && last.compareTo(text) > 0)) {
                    throw new AssertionError(last + " before " + text);
                }
                last = text;
            }
        }
    }

    private static void listener() throws Exception {
        try (var peer = new Peer(); var sending = new Peer()) {
            var queue = peer.queue("listener");
            var got = new java.util.concurrent.LinkedBlockingQueue<String>();
            peer.consumer(queue).setMessageListener(m -> {
                try {
                    got.add(Peer.text(m));
                } catch (jakarta.jms.JMSException e) {
                    got.add(e.toString());
                }
            });
            sending.send(queue, 1, 2, 3);
            for (int i = 1; i <= 3; i++) {
                equal(got.poll(Scenarios.PATIENCE_MILLIS, java.util.concurrent.TimeUnit.MILLISECONDS), "" + i);
            }
        }
    }
}
