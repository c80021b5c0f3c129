package jms;

import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.mark;
import static run.Scenarios.refused;

import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import run.Scenarios;

/** Transacted sessions: what is sent appears, and what is received is gone, with commit. */
final class Transactions {
    static void add(Scenarios all) {
        all.add("transaction_commits", Transactions::commits);
        all.add("transaction_rolls_back", Transactions::rollsBack);
        all.add("transaction_over_queues", Transactions::overQueues);
        all.add("transaction_rolls_back_in_order", Transactions::order);
        all.add("transaction_rolls_back_after_consumer_close", Transactions::closedConsumer);
        all.add("transaction_rolls_back_with_connection", Transactions::closedConnection);
        all.add("transaction_refused_commit", Transactions::refusedCommit);
        all.add("transaction_resend", Transactions::resend);
        all.add("transaction_topic", Transactions::topic);
        all.add("transaction_attempts_end_in_dlq", Transactions::attempts);
        all.add("transacted_sessions", Transactions::sessions);
        all.add("thousand_transactions", Transactions::thousand);
    }

    private static Peer transacted() throws Exception {
        return new Peer(Session.SESSION_TRANSACTED);
    }

    private static int attempts(Message message) throws Exception {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    /** Messages with these texts come, each for the nth time. */
    private static void attempt(int n, MessageConsumer consumer, Object... want) throws Exception {
        for (Object text : want) {
            var got = Peer.receive(consumer);
            equal(Peer.text(got), text.toString());
            equal(attempts(got), n);
            equal(got.getJMSRedelivered(), n > 1);
        }
    }

    private static void commits() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("commit");
            var outside = other.consumer(queue);
            peer.send(queue, 1, 2, 3);
            Peer.empty(outside);
            peer.session.commit();
            Peer.texts(outside, 1, 2, 3);
            outside.close();

            other.send(queue, 4, 5);
            var consumer = peer.consumer(queue);
            attempt(1, consumer, 4, 5);
            peer.session.commit();
            consumer.close();
            Peer.empty(other.consumer(queue));
        }
    }

    private static void rollsBack() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("rollback");
            peer.send(queue, "never");
            peer.session.rollback();
            other.send(queue, 1, 2);
            var consumer = peer.consumer(queue);
            for (int n = 1; n <= 3; n++) {
                attempt(n, consumer, 1, 2);
                peer.session.rollback();
            }
            attempt(4, consumer, 1, 2);
            peer.session.commit();
            Peer.empty(consumer);
        }
    }

    private static void overQueues() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var from = peer.queue("from");
            var one = peer.queue("one");
            var two = peer.queue("two");
            other.send(from, 1);
            var consumer = peer.consumer(from);
            var first = other.consumer(one);
            var second = other.consumer(two);
            for (boolean commit : new boolean[] {false, true}) {
                Peer.texts(consumer, 1);
                peer.send(one, "a", "b");
                peer.send(two, "c");
                if (!commit) {
                    peer.session.rollback();
                    Peer.empty(first);
                    Peer.empty(second);
                    continue;
                }
                peer.session.commit();
                Peer.texts(first, "a", "b");
                Peer.texts(second, "c");
            }
            Peer.empty(consumer);
        }
    }

    private static void order() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("order");
            other.send(queue, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
            var consumer = peer.consumer(queue);
            attempt(1, consumer, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
            peer.session.rollback();
            attempt(2, consumer, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
            peer.session.commit();
        }
    }

    private static void closedConsumer() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("closed");
            other.send(queue, 1, 2);
            var consumer = peer.consumer(queue);
            attempt(1, consumer, 1, 2);
            consumer.close();
            var outside = other.consumer(queue);
            Peer.empty(outside);
            peer.session.rollback();
            attempt(2, outside, 1, 2);
            outside.close();

            other.send(queue, 3);
            var again = peer.consumer(queue);
            attempt(1, again, 3);
            again.close();
            peer.session.commit();
            Peer.empty(other.consumer(queue));
        }
    }

    private static void closedConnection() throws Exception {
        try (var other = new Peer()) {
            var queue = other.queue("gone");
            other.send(queue, 1, 2);
            try (var peer = transacted()) {
                attempt(1, peer.consumer(queue), 1);
                peer.send(queue, "never");
            }
            var consumer = other.consumer(queue);
            attempt(2, consumer, 1);
            attempt(1, consumer, 2);
            Peer.empty(consumer);
        }
    }

    private static void refusedCommit() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("refused");
            other.send(queue, 1);
            var consumer = peer.consumer(queue);
            attempt(1, consumer, 1);
            peer.send(queue, "never");
            // A name that can't be makes the commit fail, not this send.
            refused(() -> {
                peer.session.createProducer(null).send(peer.session.createQueue("a\nb"), peer.session.createTextMessage("refused"));
                peer.session.commit();
            });
            attempt(2, consumer, 1);
            peer.session.commit();
            Peer.empty(consumer);
        }
    }

    private static void resend() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("resend");
            peer.send(queue, 1, 2);
            peer.session.rollback();
            peer.send(queue, 1, 2);
            peer.session.commit();
            var consumer = other.consumer(queue);
            attempt(1, consumer, 1, 2);
            Peer.empty(consumer);
        }
    }

    private static void topic() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var topic = peer.session.createTopic(fresh("topic"));
            var one = other.consumer(topic);
            var two = other.consumer(topic);
            peer.send(topic, "never");
            peer.session.rollback();
            peer.send(topic, 1, 2);
            peer.session.commit();
            Peer.texts(one, 1, 2);
            Peer.texts(two, 1, 2);
            Peer.empty(one);
        }
    }

    private static void attempts() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("attempts");
            String text = mark();
            other.send(queue, text);
            var consumer = peer.consumer(queue);
            for (int n = 1; n <= 10; n++) {
                attempt(n, consumer, text);
                peer.session.rollback();
            }
            Peer.empty(consumer);
            ensure(other.find("DLQ", text) != null, "it is in the DLQ");
        }
    }

    /** Each session has transactions of its own. */
    private static void sessions() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var second = peer.connection.createSession(Session.SESSION_TRANSACTED);
            var queue = peer.queue("sessions");
            other.send(queue, 1, 2, 3, 4);
            var one = peer.connection.createSession(Session.SESSION_TRANSACTED);
            var consumer = one.createConsumer(queue);
            Peer.texts(consumer, 1, 2);
            consumer.close();
            var producer = second.createProducer(queue);
            producer.send(second.createTextMessage("5"));
            one.rollback();
            second.commit();
            var third = other.consumer(queue);
            Peer.texts(third, 1, 2, 3, 4, 5);
            Peer.empty(third);
        }
    }

    private static void thousand() throws Exception {
        try (var peer = transacted(); var other = new Peer()) {
            var queue = peer.queue("thousand");
            var producer = peer.session.createProducer(queue);
            for (int i = 0; i < 1000; i++) {
                if (i % 10 == 0) {
                    producer.send(peer.session.createTextMessage("never"));
                    peer.session.rollback();
                }
                producer.send(peer.session.createTextMessage("" + i));
                peer.session.commit();
            }
            var consumer = other.consumer(queue);
            for (int i = 0; i < 1000; i++) {
                Peer.texts(consumer, i);
            }
            Peer.empty(consumer);
        }
    }
}
