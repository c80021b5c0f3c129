package protonj2;

import static run.Scenarios.PATIENCE_MILLIS;
import static run.Scenarios.ensure;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;
import static run.Scenarios.refused;

import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.DeliveryState;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.Sender;
import org.apache.qpid.protonj2.client.Session;
import org.apache.qpid.protonj2.client.exceptions.ClientTransactionRolledBackException;
import run.Scenarios;

/** Sessions with a transaction begun, of which there is one at a time. */
final class Transactions {
    static void add(Scenarios all) {
        all.add("transaction_commits", Transactions::commits);
        all.add("transaction_rolls_back", Transactions::rollsBack);
        all.add("transaction_over_queues", Transactions::overQueues);
        all.add("transaction_outcomes", Transactions::outcomes);
        all.add("transaction_refused_commit", Transactions::refusedCommit);
    }

    private static Session session(Peer peer) throws Exception {
        var session = peer.connection.openSession();
        session.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        return session;
    }

    private static Sender sender(Session session, String address) throws Exception {
        var sender = session.openSender(address);
        sender.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        return sender;
    }

    private static Receiver receiver(Session session, String address) throws Exception {
        return Peer.open(session.openReceiver(address, Peer.manual()));
    }

    private static void send(Sender sender, Object... bodies) throws Exception {
        for (Object body : bodies) {
            sender.send(Message.create(body)).awaitSettlement(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    private static void accept(int attempts, Receiver receiver, Object... want) throws Exception {
        for (Object body : want) {
            var got = Peer.receive(receiver);
            equal(got.message().body(), body);
            equal(got.message().deliveryCount(), (long) attempts);
            got.accept();
        }
    }

    private static void commits() throws Exception {
        String queue = fresh("commit");
        try (var peer = new Peer(); var other = new Peer()) {
            var session = session(peer);
            var outside = other.receiver(queue);
            session.beginTransaction();
            send(sender(session, queue), "1", "2");
            Peer.empty(outside);
            session.commitTransaction();
            Peer.bodies(outside, "1", "2");
            outside.close();

            other.send(queue, "3");
            session.beginTransaction();
            var receiver = receiver(session, queue);
            accept(0, receiver, "3");
            session.commitTransaction();
            receiver.close();
            Peer.empty(other.receiver(queue));
        }
    }

    private static void rollsBack() throws Exception {
        String queue = fresh("rollback");
        try (var peer = new Peer(); var other = new Peer()) {
            var session = session(peer);
            var receiver = receiver(session, queue);
            session.beginTransaction();
            send(sender(session, queue), "never");
            session.rollbackTransaction();
            other.send(queue, "1", "2");
            for (int attempts = 0; attempts < 3; attempts++) {
                session.beginTransaction();
                accept(attempts, receiver, "1", "2");
                session.rollbackTransaction();
            }
            session.beginTransaction();
            accept(3, receiver, "1", "2");
            session.commitTransaction();
            Peer.empty(receiver);
        }
    }

    private static void overQueues() throws Exception {
        String from = fresh("from"), one = fresh("one"), two = fresh("two");
        try (var peer = new Peer(); var other = new Peer()) {
            var session = session(peer);
            var receiver = receiver(session, from);
            var first = sender(session, one);
            var second = sender(session, two);
            other.send(from, "in");
            session.beginTransaction();
            accept(0, receiver, "in");
            send(first, "a", "b");
            send(second, "c");
            session.rollbackTransaction();
            Peer.empty(other.receiver(one));
            session.beginTransaction();
            accept(1, receiver, "in");
            send(first, "a", "b");
            send(second, "c");
            session.commitTransaction();
            Peer.bodies(other.receiver(one), "a", "b");
            Peer.bodies(other.receiver(two), "c");
            Peer.empty(receiver);
        }
    }

    private static void outcomes() throws Exception {
        String queue = fresh("outcomes");
        try (var peer = new Peer(); var other = new Peer()) {
            var session = session(peer);
            var receiver = receiver(session, queue);
            other.send(queue, "released", "failed");
            session.beginTransaction();
            Peer.receive(receiver).release();
            Peer.receive(receiver).disposition(DeliveryState.modified(true, false), true);
            session.commitTransaction();
            session.beginTransaction();
            accept(0, receiver, "released");
            accept(1, receiver, "failed");
            session.commitTransaction();
            Peer.empty(receiver);
        }
    }

    private static void refusedCommit() throws Exception {
        String queue = fresh("refused");
        try (var peer = new Peer(); var other = new Peer()) {
            var session = session(peer);
            var receiver = receiver(session, queue);
            var relay = session.openAnonymousSender();
            relay.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            other.send(queue, "1");
            session.beginTransaction();
            accept(0, receiver, "1");
            relay.send(Message.create("refused").to("a\nb")).awaitSettlement(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            Throwable e = refused(session::commitTransaction);
            ensure(e instanceof ClientTransactionRolledBackException, e.toString());
            session.beginTransaction();
            accept(1, receiver, "1");
            session.commitTransaction();
            Peer.empty(receiver);
        }
    }
}
