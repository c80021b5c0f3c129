package wire

import (
	"bytes"
	"net"
	"sync"
)

// Tap is a connection that remembers every byte which passes, so that a test can
// compare messages as they are on the wire and not as a client decodes them.
type Tap struct {
	net.Conn
	mu            sync.Mutex
	sent, arrived bytes.Buffer
}

// Read remembers what was read.
func (t *Tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived.Write(p[:n])
	return n, err
}

// Write remembers what was written.
func (t *Tap) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent.Write(p[:n])
	return n, err
}

// Sent are the whole messages that went out so far.
func (t *Tap) Sent() ([][]byte, error) { return t.messages(&t.sent) }

// Arrived are the whole messages that came in so far.
func (t *Tap) Arrived() ([][]byte, error) { return t.messages(&t.arrived) }

func (t *Tap) messages(stream *bytes.Buffer) ([][]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Messages(stream.Bytes())
}

// Messages joins the transfers in one direction of a connection to whole messages.
// A frame that is cut off at the end is left out.
func Messages(stream []byte) ([][]byte, error) {
	type link struct {
		channel uint16
		handle  uint64
	}
	var done [][]byte
	parts := map[link][]byte{}
	for r := bytes.NewReader(stream); r.Len() > 0; {
		rest := stream[len(stream)-r.Len():]
		if bytes.HasPrefix(rest, []byte("AMQP")) {
			r.Reset(rest[8:])
			continue
		}
		frame, err := ReadFrame(r)
		if err != nil && r.Len() == 0 {
			return done, nil
		}
		if err != nil {
			return nil, err
		}
		if frame.Code != CodeTransfer {
			continue
		}
		on := link{frame.Channel, frame.Number(0)}
		parts[on] = append(parts[on], frame.Payload...)
		if frame.Number(5) == 0 {
			done = append(done, parts[on])
			delete(parts, on)
		}
	}
	return done, nil
}
