package jms;

import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.mark;

import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import run.Scenarios;

/**
 * Messages that wait for their time: those that were sent for later, and those that have failed at an address of patient.#,
 * where the first attempt is followed by 300 ms, the second by 600 ms, and the third by death.
 */
final class Delays {
    private static final int MODIFIED_FAILED = 4;
    private static final long FIRST = 300, SECOND = 600;
    /** The broker's clock and this one are the same; milliseconds are cut off in between. */
    private static final long CUT = 2;

    static void add(Scenarios all) {
        all.add("sent_for_later", Delays::sentForLater);
        all.add("sent_for_later_in_transaction", Delays::sentForLaterInTransaction);
        all.add("redelivery_waits", Delays::failed);
        all.add("rollback_waits", Delays::rollback);
        all.add("rollback_holds_up_nobody", Delays::holdsUpNobody);
        all.add("listener_that_throws_waits", Delays::listener);
        all.add("recover_does_not_ask_the_broker", Delays::recover);
        all.add("not_acknowledged_does_not_count", Delays::notAcknowledged);
        all.add("prefetched_does_not_count", Delays::prefetched);
    }

    private static Queue patient(Peer peer, String what) throws Exception {
        return peer.session.createQueue("patient." + fresh(what));
    }

    /** The nth attempt, which comes no sooner than after a while, and soon then. */
    private static Message attempt(int n, MessageConsumer consumer, long since, long after) throws Exception {
        var got = Peer.receive(consumer);
        long took = System.currentTimeMillis() - since;
        ensure(took >= after - CUT, "attempt " + n + " comes after " + after + " ms, and not after " + took);
        equal(got.getIntProperty("JMSXDeliveryCount"), n);
        equal(got.getJMSRedelivered(), n > 1);
        return got;
    }

    private static void sentForLater() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("later");
            var producer = peer.session.createProducer(queue);
            long[] delays = {900, 300, 600, 0};
            long begun = System.currentTimeMillis();
            for (long delay : delays) {
                producer.setDeliveryDelay(delay);
                producer.send(peer.session.createTextMessage("" + delay));
            }
            var consumer = peer.consumer(queue);
            for (long delay : new long[] {0, 300, 600, 900}) {
                var got = attempt(1, consumer, begun, delay);
                equal(Peer.text(got), "" + delay);
                ensure(System.currentTimeMillis() >= got.getJMSDeliveryTime(), "it comes when JMSDeliveryTime says");
            }
            Peer.empty(consumer);
        }
    }

    private static void sentForLaterInTransaction() throws Exception {
        try (var peer = new Peer(Session.SESSION_TRANSACTED); var other = new Peer()) {
            var queue = peer.queue("later");
            var producer = peer.session.createProducer(queue);
            producer.setDeliveryDelay(400);
            producer.send(peer.session.createTextMessage("never"));
            peer.session.rollback();
            long begun = System.currentTimeMillis();
            producer.send(peer.session.createTextMessage("later"));
            peer.session.commit();
            var consumer = other.consumer(queue);
            Peer.empty(consumer);
            equal(Peer.text(attempt(1, consumer, begun, 400)), "later");
            Peer.empty(consumer);
        }
    }

    private static void failed() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = patient(peer, "failed");
            String text = mark();
            peer.send(queue, text);
            var consumer = peer.consumer(queue);
            long since = System.currentTimeMillis();
            long[] waits = {0, FIRST, SECOND};
            for (int n = 1; n <= 3; n++) {
                var got = attempt(n, consumer, since, waits[n - 1]);
                since = System.currentTimeMillis();
                got.setIntProperty("JMS_AMQP_ACK_TYPE", MODIFIED_FAILED);
                got.acknowledge();
            }
            equal(peer.find("DLQ", text).getIntProperty("JMSXDeliveryCount"), 4);
            Peer.empty(consumer);
        }
    }

    private static void rollback() throws Exception {
        try (var peer = new Peer(Session.SESSION_TRANSACTED); var other = new Peer()) {
            var queue = patient(peer, "rollback");
            String text = mark();
            other.send(queue, text);
            var consumer = peer.consumer(queue);
            long since = System.currentTimeMillis();
            long[] waits = {0, FIRST, SECOND};
            for (int n = 1; n <= 3; n++) {
                attempt(n, consumer, since, waits[n - 1]);
                since = System.currentTimeMillis();
                peer.session.rollback();
            }
            equal(other.find("DLQ", text).getIntProperty("JMSXDeliveryCount"), 4);
            Peer.empty(consumer);
        }
    }

    /** What has been rolled back waits; what comes behind it doesn't. */
    private static void holdsUpNobody() throws Exception {
        try (var peer = new Peer(Session.SESSION_TRANSACTED); var other = new Peer()) {
            var queue = patient(peer, "others");
            other.send(queue, 1);
            var consumer = peer.consumer(queue);
            attempt(1, consumer, 0, 0);
            long since = System.currentTimeMillis();
            peer.session.rollback();
            other.send(queue, 2);
            equal(Peer.text(attempt(1, consumer, 0, 0)), "2");
            equal(Peer.text(attempt(2, consumer, since, FIRST)), "1");
            peer.session.commit();
            Peer.empty(consumer);
        }
    }

    /** What a listener throws at is released by the client: it isn't counted, and after three times it pauses. */
    private static void listener() throws Exception {
        try (var peer = new Peer(); var sending = new Peer()) {
            var queue = patient(peer, "listener");
            sending.send(queue, 1);
            var times = new LinkedBlockingQueue<Long>();
            var counts = new LinkedBlockingQueue<Integer>();
            peer.consumer(queue).setMessageListener(m -> {
                times.add(System.nanoTime());
                try {
                    counts.add(m.getIntProperty("JMSXDeliveryCount"));
                } catch (jakarta.jms.JMSException e) {
                    counts.add(-1);
                }
                if (times.size() < 7) {
                    throw new IllegalStateException("thrown by a listener");
                }
            });
            for (int n = 1; n <= 7; n++) {
                equal(counts.poll(Scenarios.PATIENCE_MILLIS, TimeUnit.MILLISECONDS), 1);
            }
            var all = times.toArray(Long[]::new);
            long took = TimeUnit.NANOSECONDS.toMillis(all[6] - all[0]);
            ensure(took >= 10 + 20 + 40 - 3 * CUT, "the last three come after pauses, and not all within " + took + " ms");
        }
    }

    /** The client gives it to the session again by itself, and when it closes, says that one attempt has failed. */
    private static void recover() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE); var other = new Peer()) {
            var queue = patient(peer, "recover");
            peer.send(queue, 1);
            var consumer = peer.consumer(queue);
            for (int n = 1; n <= 5; n++) { // more often than attempts are allowed
                attempt(n, consumer, 0, 0);
                peer.session.recover();
            }
            long since = System.currentTimeMillis();
            peer.connection.close();
            attempt(2, other.consumer(queue), since, FIRST);
        }
    }

    /** Of what the application had, the client says when it closes that it has failed; of the rest nothing. */
    private static void notAcknowledged() throws Exception {
        try (var other = new Peer()) {
            var queue = patient(other, "unacknowledged");
            other.send(queue, 1, 2, 3);
            long since;
            try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
                Peer.texts(peer.consumer(queue), 1, 2);
                since = System.currentTimeMillis();
            }
            var consumer = other.consumer(queue);
            equal(Peer.text(attempt(1, consumer, 0, 0)), "3");
            equal(Peer.text(attempt(2, consumer, since, FIRST)), "1");
            equal(Peer.text(attempt(2, consumer, since, FIRST)), "2");
            Peer.empty(consumer);
        }
    }

    /** What was sent ahead and never received isn't an attempt, however often. */
    private static void prefetched() throws Exception {
        try (var other = new Peer()) {
            var queue = patient(other, "prefetched");
            int n = 1;
            other.send(queue, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
            for (int mode : new int[] {Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED}) {
                for (int round = 0; round < 4; round++) { // more often than attempts are allowed
                    try (var peer = new Peer("&jms.prefetchPolicy.all=10", mode)) {
                        var consumer = peer.consumer(queue);
                        var got = attempt(1, consumer, 0, 0);
                        equal(Peer.text(got), "" + n++);
                        if (mode == Session.SESSION_TRANSACTED) {
                            peer.session.commit();
                        } else {
                            got.acknowledge();
                        }
                        if (round % 2 == 0) {
                            consumer.close();
                        }
                    }
                }
            }
            var consumer = other.consumer(queue);
            for (; n <= 10; n++) {
                equal(Peer.text(attempt(1, consumer, 0, 0)), "" + n);
            }
            Peer.empty(consumer);
        }
    }
}
