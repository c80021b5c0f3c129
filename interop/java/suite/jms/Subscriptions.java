package jms;

import static run.Scenarios.ensure;
import static run.Scenarios.fresh;
import static run.Scenarios.refused;

import jakarta.jms.Session;
import run.Scenarios;

/** Durable subscriptions; shared ones aren't built yet. */
final class Subscriptions {
    static void add(Scenarios all) {
        all.add("durable_subscription", Subscriptions::durable);
        all.add("durable_subscription_in_use", Subscriptions::inUse);
        all.add("shared_subscription_is_refused", Subscriptions::shared);
    }

    private static Peer client(String id) throws Exception {
        return new Peer("", id, Session.AUTO_ACKNOWLEDGE);
    }

    private static void durable() throws Exception {
        String id = fresh("client"), name = fresh("topic");
        try (var sending = new Peer()) {
            var topic = sending.session.createTopic(name);
            try (var peer = client(id)) {
                var consumer = peer.session.createDurableConsumer(topic, "subscription");
                sending.send(topic, 1, 2);
                Peer.texts(consumer, 1);
                consumer.close();
            }
            sending.send(topic, 3);
            try (var peer = client(id)) {
                var consumer = peer.session.createDurableConsumer(topic, "subscription");
                Peer.texts(consumer, 2, 3);
                consumer.close();
                peer.session.unsubscribe("subscription");
            }
            sending.send(topic, 4);
            try (var peer = client(id)) {
                refused(() -> peer.session.unsubscribe("subscription"));
                var consumer = peer.session.createDurableConsumer(topic, "subscription");
                Peer.empty(consumer);
                consumer.close();
                peer.session.unsubscribe("subscription");
            }
        }
    }

    private static void inUse() throws Exception {
        try (var peer = client(fresh("client"))) {
            var topic = peer.session.createTopic(fresh("topic"));
            var consumer = peer.session.createDurableConsumer(topic, "subscription");
            refused(() -> peer.session.unsubscribe("subscription"));
            refused(() -> peer.session.createDurableConsumer(topic, "subscription"));
            consumer.close();
            peer.session.unsubscribe("subscription");
        }
    }

    private static void shared() throws Exception {
        try (var peer = client(fresh("client"))) {
            var topic = peer.session.createTopic(fresh("topic"));
            Throwable e = refused(() -> peer.session.createSharedConsumer(topic, "shared"));
            ensure(e.getMessage().contains("shared"), e.toString());
            refused(() -> peer.session.createSharedDurableConsumer(topic, "shared"));
        }
    }
}
