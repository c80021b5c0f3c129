package protonj2;

import static run.Scenarios.PATIENCE_MILLIS;
import static run.Scenarios.URL;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.Client;
import org.apache.qpid.protonj2.client.ClientOptions;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.DistributionMode;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Sender;

/** A client with one connection, closed when the scenario is over. */
final class Peer implements AutoCloseable {
    final Client client;
    final Connection connection;

    Peer() throws Exception {
        this(fresh("container"), new ConnectionOptions());
    }

    Peer(String container, ConnectionOptions options) throws Exception {
        client = Client.create(new ClientOptions().id(container));
        options.requestTimeout(PATIENCE_MILLIS).openTimeout(PATIENCE_MILLIS).sendTimeout(PATIENCE_MILLIS).drainTimeout(PATIENCE_MILLIS);
        connection = client.connect(URL.getHost(), URL.getPort(), options);
        connection.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** Options of a receiver whose credit is the scenario's business. */
    static ReceiverOptions manual() {
        return new ReceiverOptions().creditWindow(0).autoAccept(false).autoSettle(false);
    }

    Receiver receiver(String address) throws Exception {
        return receiver(address, manual());
    }

    Receiver receiver(String address, ReceiverOptions options) throws Exception {
        return open(connection.openReceiver(address, options));
    }

    Receiver browser(String address) throws Exception {
        var options = manual();
        options.sourceOptions().distributionMode(DistributionMode.COPY);
        return receiver(address, options);
    }

    static Receiver open(Receiver receiver) throws Exception {
        receiver.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        return receiver;
    }

    Sender sender(String address) throws Exception {
        var sender = connection.openSender(address);
        sender.openFuture().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        return sender;
    }

    static void send(Sender sender, Message<?>... messages) throws Exception {
        for (var message : messages) {
            sender.send(message).awaitAccepted(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    void send(String address, Object... bodies) throws Exception {
        var sender = sender(address);
        for (var body : bodies) {
            send(sender, Message.create(body));
        }
        sender.close();
    }

    /** Grants a credit and waits for a message. */
    static Delivery receive(Receiver receiver) throws Exception {
        receiver.addCredit(1);
        return next(receiver);
    }

    static Delivery next(Receiver receiver) throws Exception {
        var delivery = receiver.receive(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        if (delivery == null) {
            throw new AssertionError("no message within " + PATIENCE_MILLIS + " ms");
        }
        return delivery;
    }

    static Message<Object> accept(Receiver receiver) throws Exception {
        var delivery = receive(receiver);
        Message<Object> message = delivery.message();
        delivery.accept();
        return message;
    }

    static void bodies(Receiver receiver, Object... want) throws Exception {
        for (Object body : want) {
            equal(accept(receiver).body(), body);
        }
    }

    /** Grants credit, drains it, and returns what came. */
    static List<Delivery> drain(Receiver receiver, int credit) throws Exception {
        receiver.addCredit(credit);
        receiver.drain().get(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
        var came = new ArrayList<Delivery>();
        for (Delivery d = receiver.tryReceive(); d != null; d = receiver.tryReceive()) {
            came.add(d);
        }
        return came;
    }

    static List<Object> contents(List<Delivery> deliveries) throws Exception {
        var all = new ArrayList<>();
        for (var d : deliveries) {
            all.add(d.message().body());
        }
        return all;
    }

    static void empty(Receiver receiver) throws Exception {
        equal(contents(drain(receiver, 10)), List.of());
    }

    /** Browses a queue that all share until the message with the id is there. */
    Message<Object> find(String queue, Object id) throws Exception {
        for (int i = 0; i < 200; i++) {
            var browser = browser(queue);
            for (var delivery : drain(browser, 10_000)) {
                Message<Object> message = delivery.message();
                if (id.equals(message.messageId())) {
                    browser.close();
                    return message;
                }
            }
            browser.close();
            Thread.sleep(50);
        }
        throw new AssertionError(id + " doesn't come to " + queue);
    }

    @Override
    public void close() {
        connection.close();
        client.close();
    }
}
