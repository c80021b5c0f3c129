package protonj2;

import static run.Scenarios.say;
import static run.Scenarios.specimens;

import java.util.HexFormat;
import java.util.Map;
import org.apache.qpid.protonj2.buffer.ProtonBuffer;
import org.apache.qpid.protonj2.buffer.ProtonBufferAllocator;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.impl.ClientMessageSupport;
import run.Scenarios;

/** Writes what ProtonJ2 makes of each specimen; reads bytes, and what ProtonJ2 makes of them. */
final class Exchange implements Scenarios.Exchange {
    private static Message<?> decode(byte[] encoded) throws Exception {
        return ClientMessageSupport.decodeMessage(ProtonBufferAllocator.defaultAllocator().copy(encoded), annotations -> {});
    }

    private static byte[] encode(Message<?> message) throws Exception {
        ProtonBuffer buffer = message.toAdvancedMessage().encode(Map.of());
        byte[] bytes = new byte[buffer.getReadableBytes()];
        buffer.readBytes(bytes, 0, bytes.length);
        return bytes;
    }

    @Override
    public void write(String address) throws Exception {
        try (var peer = new Peer()) {
            var sender = peer.sender(address);
            for (var specimen : specimens()) {
                Message<?> message;
                try {
                    message = decode(specimen.encoded());
                    encode(message);
                } catch (RuntimeException e) {
                    say("message", specimen.name(), "skip", e.toString());
                    continue;
                }
                Peer.send(sender, message);
                say("message", specimen.name());
            }
        }
    }

    @Override
    public void read(String address, int count) throws Exception {
        try (var peer = new Peer()) {
            var receiver = peer.receiver(address);
            for (int i = 0; i < count; i++) {
                var delivery = Peer.receive(receiver);
                byte[] raw = delivery.rawInputStream().readAllBytes();
                delivery.accept();
                try {
                    say("raw", HexFormat.of().formatHex(raw), "again", HexFormat.of().formatHex(encode(decode(raw))));
                } catch (RuntimeException e) {
                    say("raw", HexFormat.of().formatHex(raw), "lost", e.toString());
                }
            }
        }
    }
}
