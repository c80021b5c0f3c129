package raw

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// TestSplitTransfers sends a message of 3 KiB with all seven sections in two transfers,
// cut at every byte.
func TestSplitTransfers(t *testing.T) {
	t.Parallel()
	to := address(t)
	sender, err := wire.NewSender(connect(t), 0, "out", to)
	if err != nil {
		t.Fatal(err)
	}
	receiver := consumer(t, to, 100_000)
	size := len(message(0, 3<<10))
	for cut := range size + 1 {
		sent := message(uint64(cut), 3<<10)
		deliver(t, sender, receiver, sent, cut)
	}
	// One byte in each transfer, and transfers without any.
	sent := message(uint64(size), 100)
	var all, empty []int
	for i := 1; i < len(sent); i++ {
		all = append(all, i)
		if i%10 == 0 {
			empty = append(empty, i, i)
		}
	}
	deliver(t, sender, receiver, sent, all...)
	deliver(t, sender, receiver, sent, empty...)
}

// deliver sends one message in pieces and compares what arrives.
func deliver(t *testing.T, sender *wire.Sender, receiver *wire.Receiver, sent []byte, cuts ...int) {
	t.Helper()
	answer, err := sender.Deliver(sent, cuts...)
	if err != nil {
		t.Fatalf("cut at %v: %v", cuts, err)
	}
	if outcome, _ := answer.Outcome(); outcome != wire.CodeAccepted {
		t.Fatalf("cut at %v: answered with %#x, state % x", cuts, answer.Code, answer.Field(4))
	}
	got, err := receiver.Accept()
	if err != nil {
		t.Fatalf("cut at %v: %v", cuts, err)
	}
	if err := wire.Intact(sent, got.Message); err != nil {
		t.Fatalf("cut at %v: %v", cuts, err)
	}
}

// TestSplitStream sends everything a client writes, from its protocol header to its
// close, with a pause at every byte of it, on a connection for each: once with the
// plain header, once with SASL, and once with all bytes apart.
func TestSplitStream(t *testing.T) {
	t.Parallel()
	for name, sasl := range map[string]bool{"plain": false, "sasl": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := address(t)
			p := peer{sasl: sasl, address: to}
			length := len(p.opening(0)) + len(p.sending(0))
			var all sync.WaitGroup
			slots := make(chan struct{}, 16)
			for cut := range length + 1 {
				slots <- struct{}{}
				all.Go(func() {
					defer func() { <-slots }()
					if err := p.play(uint64(cut), func(at int) bool { return at == cut }); err != nil {
						t.Errorf("cut at %d: %v", cut, err)
					}
				})
			}
			all.Wait()
			if err := p.play(uint64(length+1), func(int) bool { return true }); err != nil {
				t.Errorf("cut everywhere: %v", err)
			}
			if t.Failed() {
				return
			}
			arrive(t, to, p, length+2)
		})
	}
}

// arrive wants the message of every connection once and intact.
func arrive(t *testing.T, from string, p peer, count int) {
	t.Helper()
	receiver := consumer(t, from, uint32(count))
	seen := map[string]bool{}
	for range count {
		got, err := receiver.Accept()
		if err != nil {
			t.Fatalf("%d of %d messages came: %v", len(seen), count, err)
		}
		m, err := wire.Split(got.Message)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(m.Bare)] = true
	}
	for id := range count {
		m, err := wire.Split(p.message(uint64(id)))
		if err != nil {
			t.Fatal(err)
		}
		if !seen[string(m.Bare)] {
			t.Errorf("the message cut at %d didn't come as it was sent", id)
		}
	}
}

// peer is a client as a sequence of bytes.
type peer struct {
	sasl    bool
	address string
}

func (p peer) message(id uint64) []byte {
	return bytes.Join([][]byte{
		wire.Described(wire.SectionMessageAnnotations, wire.Map(wire.Symbol("x-opt-a"), wire.Ulong(id))),
		wire.Described(wire.SectionProperties, wire.List(wire.Ulong(id))),
		wire.Described(wire.SectionData, wire.Binary([]byte("body"))),
		wire.Described(wire.SectionFooter, wire.Map(wire.Symbol("x-opt-f"), wire.Ulong(id))),
	}, nil)
}

// opening is all that a client may write before it has read anything [2.4.1].
func (p peer) opening(id uint64) []byte {
	var head []byte
	if p.sasl {
		head = bytes.Join([][]byte{wire.HeaderSASL, wire.Init()}, nil)
	}
	return bytes.Join([][]byte{head, wire.HeaderAMQP, wire.Open(fmt.Sprintf("split-%t-%08d", p.sasl, id), 1<<16), wire.Begin(),
		wire.AttachSender(0, "out", p.address)}, nil)
}

// sending is what it writes when it has credit.
func (p peer) sending(id uint64) []byte {
	whole := p.message(id)
	return bytes.Join([][]byte{wire.Transfer(0, 0, true, whole[:20]), wire.Continue(0, false, whole[20:])}, nil)
}

// play writes with a pause wherever cut says so, and wants the message accepted.
func (p peer) play(id uint64, cut func(at int) bool) (err error) {
	conn, err := wire.Dial(broker.AMQP)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Hangup()) }()
	opening, sending := p.opening(id), p.sending(id)
	if err := trickle(conn, opening, cut); err != nil {
		return err
	}
	if p.sasl {
		if err := conn.Header(wire.HeaderSASL); err != nil {
			return err
		}
		outcome, err := conn.Await(wire.CodeOutcome)
		if err != nil {
			return err
		}
		if outcome.Number(0) != 0 {
			return fmt.Errorf("sasl: code %d", outcome.Number(0))
		}
	}
	if err := conn.Header(wire.HeaderAMQP); err != nil {
		return err
	}
	for _, code := range []uint64{wire.CodeOpen, wire.CodeBegin, wire.CodeAttach, wire.CodeFlow} {
		if _, err := conn.Await(code); err != nil {
			return err
		}
	}
	if err := trickle(conn, sending, func(at int) bool { return cut(len(opening) + at) }); err != nil {
		return err
	}
	answer, err := conn.Await(wire.CodeDisposition)
	if err != nil {
		return err
	}
	if outcome, _ := answer.Outcome(); outcome != wire.CodeAccepted {
		return fmt.Errorf("not accepted: state % x", answer.Field(4))
	}
	return nil
}

// trickle writes b in pieces. The pause lets the broker read each piece by itself.
func trickle(conn *wire.Conn, b []byte, cut func(at int) bool) error {
	from := 0
	for at := 1; at <= len(b); at++ {
		if at < len(b) && !cut(at) {
			continue
		}
		if err := conn.Send(b[from:at]); err != nil {
			return err
		}
		if from = at; at < len(b) {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
