package protonj2;

import static run.Scenarios.fresh;

import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Message;
import run.Scenarios;

/** The broker is killed and comes back; the client reconnects by itself. */
final class Restart {
    static void add(Scenarios all) {
        all.add("reconnect_after_restart", Restart::reconnect);
    }

    private static void reconnect() throws Exception {
        var options = new ConnectionOptions().reconnectEnabled(true);
        options.reconnectOptions().reconnectDelay(50).useReconnectBackOff(false);
        try (var peer = new Peer(fresh("container"), options)) {
            String queue = fresh("restart");
            var sender = peer.sender(queue);
            for (int i = 0; i < 50; i++) {
                Peer.send(sender, Message.create((Object) i).durable(true));
            }
            var receiver = peer.receiver(queue);
            for (int i = 0; i < 10; i++) {
                Peer.bodies(receiver, i);
            }
            Peer.send(peer.sender(fresh("fence")), Message.create("fence"));
            Scenarios.restart();
            Peer.send(sender, Message.create((Object) 50).durable(true));
            for (int i = 10; i <= 50; i++) {
                Peer.bodies(receiver, i);
            }
            Peer.empty(receiver);
        }
    }
}
