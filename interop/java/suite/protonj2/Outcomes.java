package protonj2;

import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.mark;

import java.util.Map;
import org.apache.qpid.protonj2.client.DeliveryMode;
import org.apache.qpid.protonj2.client.DeliveryState;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.SenderOptions;
import run.Scenarios;

/** What becomes of a message with each outcome. */
final class Outcomes {
    static void add(Scenarios all) {
        all.add("accepted", Outcomes::accepted);
        all.add("rejected", Outcomes::rejected);
        all.add("released", Outcomes::released);
        all.add("modified_failed", Outcomes::modifiedFailed);
        all.add("modified_undeliverable_here", Outcomes::undeliverableHere);
        all.add("attempts_end_in_dlq", Outcomes::attempts);
        all.add("expired", Outcomes::expired);
        all.add("at_most_once", Outcomes::atMostOnce);
    }

    private static Message<String> marked(String id) throws Exception {
        return Message.create("marked").messageId(id);
    }

    private static void accepted() throws Exception {
        String queue = fresh("accepted");
        try (var peer = new Peer(); var other = new Peer()) {
            peer.send(queue, "once");
            var receiver = peer.receiver(queue);
            Peer.bodies(receiver, "once");
            receiver.close();
            Peer.empty(other.receiver(queue));
        }
    }

    private static void rejected() throws Exception {
        String queue = fresh("rejected"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id).annotation("x-opt-mine", "kept"));
            var receiver = peer.receiver(queue);
            Peer.receive(receiver).reject("app:bad-order", "no such article 4711");
            Peer.empty(receiver);
            var dead = peer.find("DLQ", id);
            equal(dead.body(), "marked");
            equal(dead.annotation("x-opt-ORIG-ADDRESS"), queue);
            equal(dead.annotation("x-opt-ORIG-QUEUE"), queue);
            equal(dead.annotation("x-opt-mine"), "kept");
            equal(dead.annotation("x-opt-death-reason"), "rejected: app:bad-order: no such article 4711");
        }
    }

    private static void released() throws Exception {
        String queue = fresh("released"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id));
            var receiver = peer.receiver(queue);
            var first = Peer.receive(receiver);
            ensure(first.message().firstAcquirer(), "first-acquirer");
            first.release();
            var again = Peer.accept(receiver);
            equal(again.messageId(), id);
            equal(again.deliveryCount(), 0L);
            ensure(!again.firstAcquirer(), "not first-acquirer");
        }
    }

    private static void modifiedFailed() throws Exception {
        String queue = fresh("modified"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id).annotation("x-opt-old", "as sent"));
            var receiver = peer.receiver(queue);
            for (int attempt = 0; attempt < 3; attempt++) {
                var got = Peer.receive(receiver);
                equal(got.message().deliveryCount(), (long) attempt);
                got.disposition(DeliveryState.modified(true, false, Map.of("x-opt-new", attempt)), true);
            }
            var got = Peer.accept(receiver);
            equal(got.deliveryCount(), 3L);
            equal(got.annotation("x-opt-old"), "as sent");
            equal(got.annotation("x-opt-new"), 2);
        }
    }

    private static void undeliverableHere() throws Exception {
        String queue = fresh("undeliverable"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id));
            var here = peer.receiver(queue);
            Peer.receive(here).modified(true, true);
            var got = Peer.accept(peer.receiver(queue));
            equal(got.messageId(), id);
            equal(got.deliveryCount(), 1L);
            Peer.empty(here);
        }
    }

    private static void attempts() throws Exception {
        String queue = fresh("attempts"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id));
            var receiver = peer.receiver(queue);
            for (int i = 0; i < 10; i++) {
                Peer.receive(receiver).modified(true, false);
            }
            Peer.empty(receiver);
            equal(peer.find("DLQ", id).deliveryCount(), 10L);
        }
    }

    private static void expired() throws Exception {
        String queue = fresh("expired"), id = mark();
        try (var peer = new Peer()) {
            Peer.send(peer.sender(queue), marked(id).timeToLive(200));
            var late = peer.find("ExpiryQueue", id);
            equal(late.annotation("x-opt-ORIG-QUEUE"), queue);
            ensure(late.hasAnnotation("x-opt-ACTUAL-EXPIRY"), "x-opt-ACTUAL-EXPIRY");
            Peer.empty(peer.receiver(queue));
        }
    }

    private static void atMostOnce() throws Exception {
        String queue = fresh("once");
        try (var peer = new Peer()) {
            var receiver = peer.receiver(queue, Peer.manual().deliveryMode(DeliveryMode.AT_MOST_ONCE));
            var options = new SenderOptions().deliveryMode(DeliveryMode.AT_MOST_ONCE);
            var tracker = peer.connection.openSender(queue, options).send(Message.create("settled"));
            ensure(tracker.settled(), "sent settled");
            var got = Peer.receive(receiver);
            equal(got.message().body(), "settled");
            ensure(got.remoteSettled(), "received settled");
            receiver.close();
            Peer.empty(peer.receiver(queue));
        }
    }
}
