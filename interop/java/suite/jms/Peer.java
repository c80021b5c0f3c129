package jms;

import static run.Scenarios.PATIENCE_MILLIS;
import static run.Scenarios.URL;
import static run.Scenarios.equal;
import static run.Scenarios.fresh;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/** A started connection with one session, closed when the scenario is over. */
final class Peer implements AutoCloseable {
    final Connection connection;
    final Session session;

    Peer() throws JMSException {
        this("", Session.AUTO_ACKNOWLEDGE);
    }

    Peer(int acknowledgement) throws JMSException {
        this("", acknowledgement);
    }

    /** Options as in the URL, each behind an ampersand. */
    Peer(String options, int acknowledgement) throws JMSException {
        this(options, null, acknowledgement);
    }

    Peer(String options, String clientID, int acknowledgement) throws JMSException {
        connection = new JmsConnectionFactory(URL + "?jms.requestTimeout=" + PATIENCE_MILLIS + "&jms.sendTimeout=" + PATIENCE_MILLIS + options)
            .createConnection();
        if (clientID != null) {
            connection.setClientID(clientID);
        }
        connection.start();
        session = connection.createSession(acknowledgement);
    }

    Queue queue(String what) throws JMSException {
        return session.createQueue(fresh(what));
    }

    void send(Destination to, Object... texts) throws JMSException {
        var producer = session.createProducer(to);
        for (Object text : texts) {
            producer.send(session.createTextMessage(text.toString()));
        }
        producer.close();
    }

    MessageConsumer consumer(Destination from) throws JMSException {
        return session.createConsumer(from);
    }

    static Message receive(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(PATIENCE_MILLIS);
        if (message == null) {
            throw new AssertionError("no message within " + PATIENCE_MILLIS + " ms");
        }
        return message;
    }

    static String text(Message message) throws JMSException {
        return ((TextMessage) message).getText();
    }

    static void texts(MessageConsumer consumer, Object... want) throws JMSException {
        for (Object text : want) {
            equal(text(receive(consumer)), text.toString());
        }
    }

    /** Nothing is there; the client drains its credit to know. */
    static void empty(MessageConsumer consumer) throws JMSException {
        equal(consumer.receiveNoWait(), null);
    }

    List<Message> browse(Queue queue) throws JMSException {
        try (var browser = session.createBrowser(queue)) {
            return new ArrayList<>(Collections.<Message>list(cast(browser.getEnumeration())));
        }
    }

    @SuppressWarnings("unchecked")
    private static java.util.Enumeration<Message> cast(java.util.Enumeration<?> e) {
        return (java.util.Enumeration<Message>) e;
    }

    /** Browses a queue that all share until the message with the text is there. */
    Message find(String queue, String text) throws Exception {
        for (int i = 0; i < 200; i++) {
            for (Message message : browse(session.createQueue(queue))) {
                if (message instanceof TextMessage && text.equals(text(message))) {
                    return message;
                }
            }
            Thread.sleep(50);
        }
        throw new AssertionError(text + " doesn't come to " + queue);
    }

    @Override
    public void close() throws JMSException {
        connection.close();
    }
}
