package jms;

import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.refused;

import jakarta.jms.Session;
import run.Scenarios;

/** Queues, topics and temporary ones; what isn't built yet is refused. */
final class Destinations {
    static void add(Scenarios all) {
        all.add("queue", Destinations::queue);
        all.add("topic", Destinations::topic);
        all.add("anonymous_producer", Destinations::anonymous);
        all.add("temporary_queue", Destinations::temporaryQueue);
        all.add("temporary_topic", Destinations::temporaryTopic);
        all.add("request_reply", Destinations::requestReply);
        all.add("selector_is_refused", Destinations::selector);
        all.add("no_local_is_refused", Destinations::noLocal);
    }

    private static void queue() throws Exception {
        try (var peer = new Peer("&jms.prefetchPolicy.all=1", Session.AUTO_ACKNOWLEDGE)) {
            var queue = peer.queue("queue");
            var one = peer.consumer(queue);
            var two = peer.consumer(queue);
            peer.send(queue, 1, 2);
            equal(Integer.parseInt(Peer.text(Peer.receive(one))) + Integer.parseInt(Peer.text(Peer.receive(two))), 3);
        }
    }

    private static void topic() throws Exception {
        try (var peer = new Peer()) {
            var topic = peer.session.createTopic(fresh("topic"));
            peer.send(topic, "nobody listens");
            var one = peer.consumer(topic);
            var two = peer.consumer(topic);
            peer.send(topic, 1, 2);
            var late = peer.consumer(topic);
            Peer.texts(one, 1, 2);
            Peer.texts(two, 1, 2);
            Peer.empty(late);
        }
    }

    private static void anonymous() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("anonymous");
            var topic = peer.session.createTopic(fresh("anonymous"));
            var listening = peer.consumer(topic);
            var producer = peer.session.createProducer(null);
            producer.send(queue, peer.session.createTextMessage("1"));
            producer.send(topic, peer.session.createTextMessage("2"));
            Peer.texts(peer.consumer(queue), 1);
            Peer.texts(listening, 2);
        }
    }

    private static void temporaryQueue() throws Exception {
        try (var peer = new Peer(); var other = new Peer()) {
            var queue = peer.session.createTemporaryQueue();
            other.send(other.session.createQueue(queue.getQueueName()), 1);
            var consumer = peer.consumer(queue);
            Peer.texts(consumer, 1);
            refused(() -> other.consumer(other.session.createQueue(queue.getQueueName())));
            consumer.close();
            queue.delete();
            refused(() -> peer.send(queue, 2));
        }
    }

    private static void temporaryTopic() throws Exception {
        try (var peer = new Peer(); var other = new Peer()) {
            var topic = peer.session.createTemporaryTopic();
            var one = peer.consumer(topic);
            var two = peer.consumer(topic);
            other.send(other.session.createTopic(topic.getTopicName()), 1);
            Peer.texts(one, 1);
            Peer.texts(two, 1);
            one.close();
            two.close();
            topic.delete();
        }
    }

    private static void requestReply() throws Exception {
        try (var client = new Peer(); var service = new Peer()) {
            var address = client.queue("service");
            var requests = service.consumer(address);
            var replies = service.session.createProducer(null);
            var mine = client.session.createTemporaryQueue();
            var answers = client.consumer(mine);
            for (int i = 0; i < 3; i++) {
                var request = client.session.createTextMessage("" + i);
                request.setJMSReplyTo(mine);
                client.session.createProducer(address).send(request);
                var asked = Peer.receive(requests);
                var reply = service.session.createTextMessage("answer " + Peer.text(asked));
                reply.setJMSCorrelationID(asked.getJMSMessageID());
                replies.send(asked.getJMSReplyTo(), reply);
                var answer = Peer.receive(answers);
                equal(Peer.text(answer), "answer " + i);
                equal(answer.getJMSCorrelationID(), request.getJMSMessageID());
            }
        }
    }

    private static void selector() throws Exception {
        try (var peer = new Peer()) {
            var queue = peer.queue("selector");
            Throwable e = refused(() -> peer.session.createConsumer(queue, "colour = 'blue'"));
            ensure(e.toString().contains("not-implemented"), e.toString());
            refused(() -> peer.session.createBrowser(queue, "colour = 'blue'").getEnumeration());
        }
    }

    private static void noLocal() throws Exception {
        try (var peer = new Peer()) {
            var topic = peer.session.createTopic(fresh("local"));
            Throwable e = refused(() -> peer.session.createConsumer(topic, null, true));
            ensure(e.toString().contains("not-implemented"), e.toString());
        }
    }
}
