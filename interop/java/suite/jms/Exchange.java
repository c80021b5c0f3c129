package jms;

import static run.Scenarios.say;

import io.netty.buffer.ByteBuf;
import jakarta.jms.Destination;
import jakarta.jms.Message;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.qpid.jms.message.JmsMessage;
import run.Scenarios;

/** JMS has messages of its own; they are written instead of specimens. */
final class Exchange implements Scenarios.Exchange {
    private static Destination destination(Session session, String address) throws Exception {
        String topic = "topic://";
        return address.startsWith(topic)
            ? session.createTopic(address.substring(topic.length())) : session.createQueue(address);
    }

    private static Map<String, Message> messages(Session session) throws Exception {
        var all = new LinkedHashMap<String, Message>();
        all.put("jms text", session.createTextMessage("grüße ☃ \uD83D\uDE80"));
        var bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, -1, 65});
        all.put("jms bytes", bytes);
        var map = session.createMapMessage();
        map.setBoolean("boolean", true);
        map.setByte("byte", Byte.MIN_VALUE);
        map.setShort("short", Short.MIN_VALUE);
        map.setInt("int", Integer.MIN_VALUE);
        map.setLong("long", Long.MIN_VALUE);
        map.setFloat("float", 1.5f);
        map.setDouble("double", Math.PI);
        map.setString("string", "text");
        map.setBytes("bytes", new byte[] {1});
        all.put("jms map", map);
        var stream = session.createStreamMessage();
        stream.writeBoolean(true);
        stream.writeInt(7);
        stream.writeString("text");
        all.put("jms stream", stream);
        all.put("jms object", session.createObjectMessage(new ArrayList<>(List.of("a", 1))));
        var typed = session.createObjectMessage();
        typed.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
        typed.setObject(new ArrayList<>(List.of("a", 1L)));
        all.put("jms typed object", typed);
        var properties = session.createMessage();
        properties.setBooleanProperty("boolean", true);
        properties.setByteProperty("byte", Byte.MAX_VALUE);
        properties.setShortProperty("short", Short.MAX_VALUE);
        properties.setIntProperty("int", Integer.MAX_VALUE);
        properties.setLongProperty("long", Long.MAX_VALUE);
        properties.setFloatProperty("float", Float.MIN_VALUE);
        properties.setDoubleProperty("double", Double.MAX_VALUE);
        properties.setStringProperty("string", "text");
        properties.setJMSCorrelationID("correlation");
        properties.setJMSReplyTo(session.createQueue("reply"));
        properties.setJMSType("type");
        all.put("jms properties", properties);
        return all;
    }

    @Override
    public void write(String address) throws Exception {
        try (var peer = new Peer()) {
            var producer = peer.session.createProducer(destination(peer.session, address));
            for (var message : messages(peer.session).entrySet()) {
                producer.send(message.getValue());
                say("message", message.getKey());
            }
        }
    }

    @Override
    public void read(String address, int count) throws Exception {
        try (var peer = new Peer()) {
            var consumer = peer.consumer(destination(peer.session, address));
            for (int i = 0; i < count; i++) {
                var message = (JmsMessage) Peer.receive(consumer);
                var encoded = (ByteBuf) message.getFacade().encodeMessage();
                byte[] bytes = new byte[encoded.readableBytes()];
                encoded.readBytes(bytes);
                say("again", HexFormat.of().formatHex(bytes));
            }
        }
    }
}
