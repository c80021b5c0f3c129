package jms;

import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.mark;

import jakarta.jms.Message;
import jakarta.jms.Session;
import run.Scenarios;

/** What becomes of a message with each way to acknowledge it. */
final class Acknowledgement {
    private static final int REJECTED = 2, RELEASED = 3, MODIFIED_FAILED = 4, MODIFIED_FAILED_UNDELIVERABLE = 5;

    static void add(Scenarios all) {
        all.add("auto_acknowledge", Acknowledgement::auto);
        all.add("client_acknowledge", Acknowledgement::client);
        all.add("dups_ok_acknowledge", Acknowledgement::dupsOK);
        all.add("recover", Acknowledgement::recover);
        all.add("rejected", Acknowledgement::rejected);
        all.add("released", Acknowledgement::released);
        all.add("modified_failed", Acknowledgement::modifiedFailed);
        all.add("modified_undeliverable_here", Acknowledgement::undeliverableHere);
        all.add("attempts_end_in_dlq", Acknowledgement::attempts);
        all.add("expired", Acknowledgement::expired);
    }

    private static void outcome(Message message, int type) throws Exception {
        message.setIntProperty("JMS_AMQP_ACK_TYPE", type);
        message.acknowledge();
    }

    private static void auto() throws Exception {
        try (var peer = new Peer(); var other = new Peer()) {
            var queue = peer.queue("auto");
            peer.send(queue, 1, 2);
            try (var consumer = peer.consumer(queue)) {
                Peer.texts(consumer, 1, 2);
            }
            Peer.empty(other.consumer(queue));
        }
    }

    private static void client() throws Exception {
        try (var other = new Peer()) {
            var queue = other.queue("client");
            other.send(queue, 1, 2, 3);
            try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
                var consumer = peer.consumer(queue);
                Peer.receive(consumer);
                Peer.receive(consumer).acknowledge(); // of both
                Peer.texts(consumer, 3);
            }
            try (var consumer = other.consumer(queue)) {
                Peer.texts(consumer, 3);
                Peer.empty(consumer);
            }
        }
    }

    private static void dupsOK() throws Exception {
        try (var other = new Peer()) {
            var queue = other.queue("dups");
            other.send(queue, 1, 2, 3);
            try (var peer = new Peer(Session.DUPS_OK_ACKNOWLEDGE)) {
                Peer.texts(peer.consumer(queue), 1, 2, 3);
            }
            Peer.empty(other.consumer(queue));
        }
    }

    private static void recover() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("recover");
            peer.send(queue, 1, 2);
            var consumer = peer.consumer(queue);
            Peer.texts(consumer, 1, 2);
            peer.session.recover();
            for (int i = 1; i <= 2; i++) {
                var again = Peer.receive(consumer);
                equal(Peer.text(again), "" + i);
                ensure(again.getJMSRedelivered(), "JMSRedelivered");
                equal(again.getIntProperty("JMSXDeliveryCount"), 2);
                again.acknowledge();
            }
            Peer.empty(consumer);
        }
    }

    private static void rejected() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("rejected");
            String text = mark();
            peer.send(queue, text);
            var consumer = peer.consumer(queue);
            outcome(Peer.receive(consumer), REJECTED);
            Peer.empty(consumer);
            peer.find("DLQ", text);
        }
    }

    private static void released() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("released");
            peer.send(queue, 1);
            var consumer = peer.consumer(queue);
            outcome(Peer.receive(consumer), RELEASED);
            var again = Peer.receive(consumer);
            equal(again.getIntProperty("JMSXDeliveryCount"), 1);
            again.acknowledge();
        }
    }

    private static void modifiedFailed() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("modified");
            peer.send(queue, 1);
            var consumer = peer.consumer(queue);
            for (int attempt = 1; attempt <= 3; attempt++) {
                var got = Peer.receive(consumer);
                equal(got.getIntProperty("JMSXDeliveryCount"), attempt);
                equal(got.getJMSRedelivered(), attempt > 1);
                outcome(got, MODIFIED_FAILED);
            }
            Peer.receive(consumer).acknowledge();
        }
    }

    private static void undeliverableHere() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE); var other = new Peer()) {
            var queue = peer.queue("undeliverable");
            peer.send(queue, 1);
            var consumer = peer.consumer(queue);
            outcome(Peer.receive(consumer), MODIFIED_FAILED_UNDELIVERABLE);
            Peer.empty(consumer);
            Peer.texts(other.consumer(queue), 1);
        }
    }

    private static void attempts() throws Exception {
        try (var peer = new Peer(Session.CLIENT_ACKNOWLEDGE)) {
            var queue = peer.queue("attempts");
            String text = mark();
            peer.send(queue, text);
            var consumer = peer.consumer(queue);
            for (int i = 0; i < 10; i++) {
                outcome(Peer.receive(consumer), MODIFIED_FAILED);
            }
            Peer.empty(consumer);
            equal(peer.find("DLQ", text).getIntProperty("JMSXDeliveryCount"), 11);
        }
    }

    private static void expired() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("expired");
            String text = mark();
            var producer = peer.session.createProducer(queue);
            producer.setTimeToLive(200);
            producer.send(peer.session.createTextMessage(text));
            peer.find("ExpiryQueue", text);
            Peer.empty(peer.consumer(queue));
        }
    }
}
