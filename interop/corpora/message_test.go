package corpora

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// TestMessages sends every recorded message as the payload of a delivery. The broker
// may take or refuse it, but has to answer, and what it takes has to come out as it
// went in.
func TestMessages(t *testing.T) {
	all := inputs(t, "fuzz-message-decode")
	if len(all) < 300 {
		t.Fatalf("%d inputs in the archive", len(all))
	}
	witness := newWitness(t)
	witness.exchange(t, "before")
	base, err := broker.Gauges()
	if err != nil {
		t.Fatal(err)
	}

	p := &publisher{address: "odd"}
	var taken []input
	refused := map[string]int{}
	for i, message := range all {
		why, err := p.publish(message.data)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", message.name, err)
		case why == "":
			taken = append(taken, message)
		default:
			refused[why]++
		}
		if i%batch == 0 {
			witness.exchange(t, fmt.Sprint("after ", i))
		}
	}
	p.leave(t)
	t.Logf("%d messages: %d taken, refused %v", len(all), len(taken), refused)
	if len(taken) == 0 || len(refused) == 0 {
		t.Errorf("%d taken and %d refused: both kinds are in the archive", len(taken), len(all)-len(taken))
	}
	collect(t, taken)
	witness.exchange(t, "at the end")
	broker.Settled(t, base, slack, 20*time.Second)
	witness.leave(t)
}

// publisher sends odd messages and comes back when the broker throws it out.
type publisher struct {
	address string
	conn    *wire.Conn
	sender  *wire.Sender
	links   uint32
}

// publish returns why the broker refused the message, "" when it took it, and an
// error when it did neither.
func (p *publisher) publish(message []byte) (why string, err error) {
	if p.sender == nil {
		if err := p.attach(); err != nil {
			return "", err
		}
	}
	var cuts []int
	for at := 16 << 10; at < len(message); at += 16 << 10 {
		cuts = append(cuts, at)
	}
	answer, err := p.sender.Deliver(message, cuts...)
	if err != nil {
		return "", err
	}
	if answer.Code == wire.CodeDetach {
		p.sender = nil
		return "detach " + answer.Condition(2), p.conn.Send(wire.Detach(p.links - 1))
	}
	switch outcome, _ := answer.Outcome(); outcome {
	case wire.CodeAccepted:
		return "", nil
	case wire.CodeRejected:
		_, list, err := wire.Code(answer.Field(4))
		if err != nil {
			return "", err
		}
		items, err := wire.Items(list)
		if err != nil || len(items) == 0 {
			return "", fmt.Errorf("rejected without an error: % x, %w", list, err)
		}
		condition, _ := wire.Failure(items[0])
		return "rejected " + condition, nil
	default:
		return "", fmt.Errorf("answer %#x with state % x", answer.Code, answer.Field(4))
	}
}

func (p *publisher) attach() error {
	var err error
	if p.conn == nil {
		if p.conn, err = wire.Connect(broker.AMQP, "odd-publisher"); err != nil {
			return err
		}
	}
	name := fmt.Sprint("odd-", p.links)
	p.sender, err = wire.NewSender(p.conn, p.links, name, p.address)
	p.links++
	return err
}

func (p *publisher) leave(t *testing.T) {
	t.Helper()
	if err := p.conn.Hangup(); err != nil {
		t.Errorf("publisher: %v", err)
	}
}

// collect receives what was taken and compares it with what was sent. A message may
// have said itself that it expires, and comes from ExpiryQueue then; so only what no
// intermediary may touch is compared, in any order.
func collect(t *testing.T, sent []input) {
	t.Helper()
	missing := map[string]int{}
	for _, message := range sent {
		missing[untouched(t, message.data)]++
	}
	arrivals := make(chan []byte)
	failures := make(chan error, 2)
	done := make(chan struct{})
	defer close(done)
	for _, address := range []string{"odd", "ExpiryQueue"} {
		conn, err := wire.Connect(broker.AMQP, "odd-consumer-"+address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		receiver, err := wire.NewReceiver(conn, 0, "in", address, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				got, err := receiver.Accept()
				if err != nil {
					failures <- err
					return
				}
				select {
				case arrivals <- got.Message:
				case <-done:
					return
				}
			}
		}()
	}
	for came := range len(sent) {
		select {
		case message := <-arrivals:
			key := untouched(t, message)
			if missing[key]--; missing[key] < 0 {
				t.Errorf("a message came that nobody sent: % x", key)
			}
		case err := <-failures:
			t.Fatalf("%d of %d messages came: %v", came, len(sent), err)
		case <-time.After(15 * time.Second):
			t.Fatalf("%d of %d messages came", came, len(sent))
		}
	}
}

// untouched is the bare message and the footer.
func untouched(t *testing.T, message []byte) string {
	t.Helper()
	m, err := wire.Split(message)
	if err != nil {
		t.Fatalf("the broker took a message that has no sections: %v: % x", err, message)
	}
	return string(bytes.Join([][]byte{m.Bare, m.Footer}, []byte("|")))
}
