package protonj2;

import static run.Scenarios.equal;
import static run.Scenarios.fresh;

import java.util.List;
import org.apache.qpid.protonj2.client.Message;
import run.Scenarios;

/** Credit, draining, browsing and order. */
final class Flow {
    static void add(Scenarios all) {
        all.add("drain", Flow::drain);
        all.add("credit_of_one", Flow::creditOfOne);
        all.add("browse", Flow::browse);
        all.add("priority", Flow::priority);
    }

    private static void drain() throws Exception {
        String queue = fresh("drain");
        try (var peer = new Peer()) {
            var receiver = peer.receiver(queue);
            Peer.empty(receiver);
            peer.send(queue, 0, 1, 2);
            // Not drained with just two credits: ProtonJ2 takes that for done when they are used up, and
            // the broker's answer, which is still on its way, for that to the next drain.
            Peer.bodies(receiver, 0, 1);
            equal(Peer.contents(Peer.drain(receiver, 10)), List.of(2));
            peer.send(queue, 3);
            equal(receiver.queuedDeliveries(), 0L);
            equal(Peer.contents(Peer.drain(receiver, 1)), List.of(3));
        }
    }

    private static void creditOfOne() throws Exception {
        String queue = fresh("one");
        try (var peer = new Peer()) {
            var sender = peer.sender(queue);
            for (int i = 0; i < 20; i++) {
                Peer.send(sender, Message.create((Object) i));
            }
            var receiver = peer.receiver(queue);
            for (int i = 0; i < 20; i++) {
                var got = Peer.receive(receiver);
                Peer.send(peer.sender(fresh("fence")), Message.create("fence"));
                equal(receiver.queuedDeliveries(), 0L);
                equal(got.message().body(), i);
                got.accept();
            }
            Peer.empty(receiver);
        }
    }

    private static void browse() throws Exception {
        String queue = fresh("browse");
        try (var peer = new Peer()) {
            peer.send(queue, 0, 1, 2);
            for (int i = 0; i < 2; i++) {
                var browser = peer.browser(queue);
                var seen = Peer.drain(browser, 10);
                equal(Peer.contents(seen), List.of(0, 1, 2));
                for (var delivery : seen) {
                    delivery.accept();
                }
                browser.close();
            }
            Peer.bodies(peer.receiver(queue), 0, 1, 2);
        }
    }

    private static void priority() throws Exception {
        String queue = fresh("priority");
        try (var peer = new Peer()) {
            var sender = peer.sender(queue);
            for (int i = 0; i < 30; i++) {
                Peer.send(sender, Message.create((Object) i).priority((byte) (i * 7 % 10)));
            }
            var receiver = peer.receiver(queue);
            for (int p = 9; p >= 0; p--) {
                for (int i = 0; i < 30; i++) {
                    if (i * 7 % 10 == p) {
                        Peer.bodies(receiver, i);
                    }
                }
            }
        }
    }
}
