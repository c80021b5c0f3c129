package protonj2;

import static run.Scenarios.PATIENCE_MILLIS;
import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.refused;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.DurabilityMode;
import org.apache.qpid.protonj2.client.ExpiryPolicy;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.SenderOptions;
import run.Scenarios;

/** Queues, topics, dynamic nodes and subscriptions; what isn't built yet is refused. */
final class Addresses {
    static void add(Scenarios all) {
        all.add("queue", () -> queue(fresh("queue")));
        all.add("queue_by_capability", () -> queue(fresh("queue"), "queue"));
        all.add("queue_by_prefix", () -> queue("queue://" + fresh("queue")));
        all.add("topic_by_capability", () -> topic(fresh("topic"), "topic"));
        all.add("topic_by_prefix", () -> topic("topic://" + fresh("topic")));
        all.add("anonymous_relay", Addresses::anonymous);
        all.add("request_reply", Addresses::requestReply);
        all.add("durable_subscription", Addresses::durable);
        all.add("selector_is_refused", Addresses::selector);
    }

    private static ReceiverOptions from(String... capabilities) {
        var options = Peer.manual();
        options.sourceOptions().capabilities(capabilities);
        return options;
    }

    private static SenderOptions to(String... capabilities) {
        var options = new SenderOptions();
        options.targetOptions().capabilities(capabilities);
        return options;
    }

    private static void queue(String address, String... capabilities) throws Exception {
        try (var peer = new Peer()) {
            var one = peer.receiver(address, from(capabilities));
            var two = peer.receiver(address, from(capabilities));
            var sender = peer.connection.openSender(address, to(capabilities));
            for (int i = 0; i < 3; i++) {
                Peer.send(sender, Message.create((Object) i));
            }
            var got = new ArrayList<>(Peer.contents(Peer.drain(one, 2)));
            got.addAll(Peer.contents(Peer.drain(two, 2)));
            got.sort(null);
            equal(got, List.of(0, 1, 2));
        }
    }

    private static void topic(String address, String... capabilities) throws Exception {
        try (var peer = new Peer()) {
            var sender = peer.connection.openSender(address, to(capabilities));
            Peer.send(sender, Message.create("nobody listens"));
            var one = peer.receiver(address, from(capabilities));
            var two = peer.receiver(address, from(capabilities));
            Peer.send(sender, Message.create((Object) 1), Message.create((Object) 2));
            var late = peer.receiver(address, from(capabilities));
            equal(Peer.contents(Peer.drain(one, 10)), List.of(1, 2));
            equal(Peer.contents(Peer.drain(two, 10)), List.of(1, 2));
            Peer.empty(late);
        }
    }

    private static void anonymous() throws Exception {
        String address = fresh("relay");
        try (var peer = new Peer()) {
            var relay = peer.connection.openAnonymousSender();
            Peer.send(relay, Message.create("relayed").to(address));
            var got = Peer.accept(peer.receiver(address));
            equal(got.to(), address);
            equal(got.body(), "relayed");
            var lost = relay.send(Message.create("to nobody")).awaitSettlement(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            ensure(lost.remoteState().isRejected(), "rejected without a to");
        }
    }

    private static void requestReply() throws Exception {
        String service = fresh("service");
        try (var client = new Peer(); var answering = new Peer()) {
            var requests = answering.receiver(service);
            var replies = answering.connection.openAnonymousSender();
            var mine = Peer.open(client.connection.openDynamicReceiver(Peer.manual()));
            ensure(mine.source().dynamic() && !mine.address().isEmpty(), "a dynamic node");
            for (int i = 0; i < 3; i++) {
                Peer.send(client.sender(service), Message.create((Object) i).replyTo(mine.address()).correlationId("c" + i));
                var asked = Peer.accept(requests);
                Peer.send(replies, Message.create((Object) ((Integer) asked.body() * 2)).to(asked.replyTo()).correlationId(asked.correlationId()));
                var answer = Peer.accept(mine);
                equal(answer.correlationId(), "c" + i);
                equal(answer.body(), i * 2);
            }
        }
    }

    private static void durable() throws Exception {
        String container = fresh("container"), address = "topic://" + fresh("topic");
        var options = Peer.manual().linkName("subscription");
        options.sourceOptions().durabilityMode(DurabilityMode.UNSETTLED_STATE).expiryPolicy(ExpiryPolicy.NEVER);
        try (var peer = new Peer(container, new ConnectionOptions())) {
            peer.receiver(address, options).detach();
        }
        try (var peer = new Peer()) {
            peer.send(address, "while away");
        }
        try (var peer = new Peer(container, new ConnectionOptions())) {
            var receiver = peer.receiver(address, options);
            Peer.bodies(receiver, "while away");
            receiver.close();
        }
    }

    private static void selector() throws Exception {
        try (var peer = new Peer()) {
            var options = Peer.manual();
            options.sourceOptions().addFilter("s", org.apache.qpid.protonj2.types.UnsignedLong.valueOf(0x0000468C00000004L), "colour = 'blue'");
            Throwable e = refused(() -> peer.receiver(fresh("selector"), options));
            ensure(e.toString().contains("selector"), e.toString());
        }
    }
}
