package jms;

import static run.Scenarios.PATIENCE_MILLIS;
import static run.Scenarios.URL;
import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;

import jakarta.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;
import run.Scenarios;

/** The broker is killed and comes back; the client fails over to it by itself. */
final class Restart {
    static void add(Scenarios all) {
        all.add("reconnect_after_restart", Restart::reconnect);
        all.add("durable_subscription_after_restart", Restart::subscription);
        all.add("case_241_sent_again_after_restart", Restart::sentAgain);
        all.add("delays_after_restart", Restart::delays);
    }

    private static jakarta.jms.Connection connect(String id) throws Exception {
        var connection = new JmsConnectionFactory("failover:(" + URL + ")?failover.reconnectDelay=50&failover.useReconnectBackOff=false"
            + "&jms.requestTimeout=" + PATIENCE_MILLIS + "&jms.sendTimeout=" + PATIENCE_MILLIS).createConnection();
        connection.setClientID(id);
        connection.start();
        return connection;
    }

    private static void reconnect() throws Exception {
        try (var connection = connect(fresh("client")); var session = connection.createSession(Session.AUTO_ACKNOWLEDGE)) {
            var queue = session.createQueue(fresh("restart"));
            var producer = session.createProducer(queue);
            for (int i = 0; i < 50; i++) {
                producer.send(session.createTextMessage("" + i));
            }
            var consumer = session.createConsumer(queue);
            for (int i = 0; i < 10; i++) {
                Peer.texts(consumer, i);
            }
            Thread.sleep(200); // the last acknowledgements go out without an answer to wait for
            Scenarios.restart();
            producer.send(session.createTextMessage("50"));
            for (int i = 10; i <= 50; i++) {
                Peer.texts(consumer, i);
            }
            Peer.empty(consumer);
        }
    }

    private static void sentAgain() throws Exception {
        try (var connection = connect(fresh("client")); var session = connection.createSession(Session.AUTO_ACKNOWLEDGE)) {
            var queue = session.createQueue(fresh("restart"));
            var producer = session.createProducer(queue);
            for (int round = 0; round < 2; round++) {
                for (int i = 0; i < 20 + round; i++) {
                    var message = session.createTextMessage("" + i);
                    message.setStringProperty("_AMQ_DUPL_ID", "id-" + i);
                    producer.send(message);
                }
                if (round == 0) {
                    Scenarios.restart();
                }
            }
            var consumer = session.createConsumer(queue);
            for (int i = 0; i <= 20; i++) {
                Peer.texts(consumer, i);
            }
            Peer.empty(consumer);
        }
    }

    private static void subscription() throws Exception {
        String id = fresh("client");
        try (var connection = connect(id); var session = connection.createSession(Session.AUTO_ACKNOWLEDGE); var sending = connect(fresh("sender"));
             var out = sending.createSession(Session.AUTO_ACKNOWLEDGE)) {
            var topic = session.createTopic(fresh("topic"));
            session.createDurableConsumer(topic, "subscription").close();
            var producer = out.createProducer(topic);
            producer.send(out.createTextMessage("1"));
            Scenarios.restart();
            producer.send(out.createTextMessage("2"));
            var consumer = session.createDurableConsumer(topic, "subscription");
            Peer.texts(consumer, 1, 2);
            consumer.close();
            session.unsubscribe("subscription");
        }
    }

    /** What waits, since it was sent for later or has failed, comes at its time, in order of it, though the broker was gone. */
    private static void delays() throws Exception {
        try (var connection = connect(fresh("client")); var session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
             var failing = connection.createSession(Session.SESSION_TRANSACTED)) {
            var queue = session.createQueue("patient." + fresh("restart"));
            var producer = session.createProducer(queue);
            producer.send(session.createTextMessage("failed"));
            long begun = System.currentTimeMillis();
            for (long delay : new long[] {6000, 3000, 4500}) {
                producer.setDeliveryDelay(delay);
                producer.send(session.createTextMessage("" + delay));
            }
            var first = failing.createConsumer(queue);
            Peer.texts(first, "failed");
            failing.rollback();
            first.close();
            Scenarios.restart();
            var consumer = session.createConsumer(queue);
            var again = Peer.receive(consumer);
            equal(Peer.text(again), "failed");
            equal(again.getIntProperty("JMSXDeliveryCount"), 2);
            for (long delay : new long[] {3000, 4500, 6000}) {
                Peer.texts(consumer, delay);
                long took = System.currentTimeMillis() - begun;
                ensure(took >= delay - 2, "it comes after " + delay + " ms, and not after " + took);
            }
            Peer.empty(consumer);
        }
    }
}
