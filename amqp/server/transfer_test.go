package server

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

func TestCase169_LargeMessagesInSmallFrames(t *testing.T) {
	r := start(t, nil)
	small := r.dial("small", func(c *amqp.Config) { c.MaxFrameSize = 512 })
	s := small.session()
	out := small.sender(s, "out", "q")
	in := small.receiver(s, "in", "q", 10)
	in.keep = true
	for i, size := range []int{1 << 10, 511, 512, 513, 64 << 10, 2 << 20} {
		message := codec.AppendData(nil, bytes.Repeat([]byte{byte(i + 1)}, size))
		small.send(out, message, false)
		small.until("message", func() bool { return len(in.messages) == 1 })
		d := delivery{message: in.messages[0].message}
		unchanged(t, message, d)
		s.Dispose(in.messages[0].id, accepted)
		in.messages = nil
	}
	small.close()
	r.depth("q", 0, 0)
	if s := r.server.Stats(); s.PartialBytes != 0 {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
}

func TestCase170_LinksInterleave(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "a")
	p.sender(1, "b")
	in := map[uint32][]byte{0: data("first message of a"), 1: data("and the one of b")}
	starts := [2]*codec.Transfer{p.transfer(0, false), p.transfer(1, false)}
	for i := range 18 {
		for handle := range uint32(2) {
			x := &codec.Transfer{Handle: handle}
			if i == 0 {
				x = starts[handle]
			}
			m := in[handle]
			from, to := len(m)*i/18, len(m)*(i+1)/18
			x.More = i < 17
			p.send(x, m[from:to])
		}
	}
	p.accepted(2)
	p.receiver(2, "a", 1)
	unchanged(t, in[0], p.receive())
	p.receiver(3, "b", 1)
	unchanged(t, in[1], p.receive())
}

func TestCase170_BrokerInterleavesLinks(t *testing.T) {
	r := start(t, nil)
	r.load("a", 3, 200<<10)
	r.load("b", 3, 200<<10)
	p := r.connect()
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: 4096, ChannelMax: 255})
	p.begin()
	p.receiver(0, "a", 0)
	p.receiver(1, "b", 0)
	p.write(append(encode(0, p.creditFlow(0, 0, 3, false)), encode(0, p.creditFlow(1, 0, 3, false))...))
	sizes, done, turns := map[uint32]int{}, 0, 0
	last := uint32(9)
	started := map[uint32]bool{}
	var current uint32
	for done < 6 {
		x, payload := await[codec.Transfer](p)
		if x.Handle != last {
			turns++
			last = x.Handle
		}
		if x.DeliveryID.Set {
			if started[x.Handle] {
				t.Fatal("a delivery starts within another on its link")
			}
			if x.DeliveryID.Value != current {
				t.Errorf("delivery-id %d, want %d", x.DeliveryID.Value, current)
			}
			current++
			started[x.Handle] = true
		}
		sizes[x.Handle] += len(payload)
		if !x.More {
			started[x.Handle] = false
			done++
		}
	}
	if sizes[0] != sizes[1] || sizes[0] < 600<<10 {
		t.Errorf("sizes are %v", sizes)
	}
	if turns < 4 {
		t.Errorf("links took turns %d times only", turns)
	}
}

func TestCase172_EmptyLastFrame(t *testing.T) {
	inChunks(t, data("x"), nil)
	inChunks(t, nil, data("x"), nil, nil)
}

func TestCase173_MoreLeftOut(t *testing.T) {
	inChunks(t, data("x"))
	inChunks(t, nil, data("x"))
}

func TestCase275_EmptyLastFrameOfAStream(t *testing.T) {
	inChunks(t, data("x")[:3], nil, data("x")[3:4], data("x")[4:], nil)
}

// inChunks sends a message in frames of the given payloads; the last one's list
// ends before more. It must arrive once.
func inChunks(t *testing.T, chunks ...[]byte) {
	t.Helper()
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	x := p.transfer(0, false)
	for i, chunk := range chunks {
		if i < len(chunks)-1 {
			x.More = true
			p.send(x, chunk)
			x = &codec.Transfer{}
			continue
		}
		fields := []byte{0x52, 0} // handle
		if i == 0 {               // delivery-id, delivery-tag
			fields = append(fields, 0x52, 0, 0xa0, 1, 't')
		}
		n := byte(1)
		if i == 0 {
			n = 3
		}
		p.count().frames++
		p.write(rawFrame(0, 0, append(append([]byte{0, 0x53, 0x14, 0xc0, byte(1 + len(fields)), n}, fields...), chunk...)))
	}
	p.accepted(1)
	p.receiver(1, "q", 10)
	unchanged(t, data("x"), p.receive())
	p.quiet(codec.CodeTransfer)
	r.depth("q", 0, 1)
}

func TestCase176_ManySmallFramesAreCapped(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	x := p.transfer(0, false)
	x.More = true
	p.send(x)
	batch := bytes.Repeat(encode(0, &codec.Transfer{More: true}), 1000)
	for range 2 {
		p.write(batch)
	}
	p.detached(amqp.ConditionTransferLimitExceeded)
}

func TestCase176_AByteAFrame(t *testing.T) {
	// Memory is as large as the message, not as its frames.
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	const n = 100_000
	message := data(string(make([]byte, n)))
	x := p.transfer(0, false)
	x.More = true
	p.send(x, message[:len(message)-n])
	one := encode(0, &codec.Transfer{More: true}, []byte{0})
	for sent := 0; sent < n-1000; sent += 1000 {
		p.count().frames += 1000
		p.write(bytes.Repeat(one, 1000))
		p.barrier() // the window is open again
		p.aside = nil
	}
	if s := r.server.Stats(); s.PartialBytes != int64(len(message)-1000) {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
	p.send(&codec.Transfer{}, make([]byte, 1000))
	p.accepted(1)
	p.receiver(1, "q", 1)
	unchanged(t, message, p.receive())
}

func TestPartialMessagesShareABudget(t *testing.T) {
	r := start(t, func(c *Config, _ *ListenerOptions, _ *engineOptions) { c.MaxPartialBytes = 100_000 })
	a, b := r.opened("a"), r.opened("b")
	for _, p := range []*peer{a, b} {
		p.sender(0, "q")
		x := p.transfer(0, false)
		x.More = true
		p.send(x, make([]byte, 40_000))
		p.barrier()
	}
	if s := r.server.Stats(); s.PartialBytes != 80_000 {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
	// The one that began first goes, whoever asks for more.
	b.send(&codec.Transfer{More: true}, make([]byte, 40_000))
	a.detached(limitExceeded)
	a.send(&codec.Transfer{More: true}, make([]byte, 40_000)) // on its way already
	a.send(&codec.Detach{Closed: true})
	a.barrier()
	b.barrier()
	if s := r.server.Stats(); s.PartialBytes != 80_000 {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
	a.sender(1, "q")
	x := a.transfer(1, false)
	x.More = true
	a.send(x, make([]byte, 10_000))
	a.barrier()
	b.send(&codec.Transfer{More: true}, make([]byte, 40_000)) // now it is the first
	b.detached(limitExceeded)
	b.send(&codec.Detach{Closed: true})
	b.barrier()
	if s := r.server.Stats(); s.PartialBytes != 10_000 {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
	// Whole messages don't count, and what is aborted counts no more.
	b.sender(2, "q")
	b.put(2, data(string(make([]byte, 50_000))))
	a.send(&codec.Transfer{Handle: 1, Aborted: true})
	a.barrier()
	if s := r.server.Stats(); s.PartialBytes != 0 {
		t.Errorf("partial bytes: %d", s.PartialBytes)
	}
	// Nor what a lost connection, an ended session or a detached link left.
	for i, leave := range []func(p *peer){
		func(p *peer) { p.socket.Close() },
		func(p *peer) { p.send(&codec.End{}) },
		func(p *peer) { p.send(&codec.Detach{Closed: true}) },
		func(p *peer) { p.write(encode(0, &codec.Close{})) },
		func(p *peer) { p.send(&codec.Transfer{Handle: 77}) },
	} {
		p := r.opened(fmt.Sprint("leaves ", i))
		p.sender(0, "q")
		x := p.transfer(0, false)
		x.More = true
		p.send(x, make([]byte, 10_000))
		leave(p)
		eventually(t, "no partial bytes", func() bool { return r.server.Stats().PartialBytes == 0 })
	}
}

func TestCase179_SettledMessagesBeforeAReset(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprint("reset=", reset), func(t *testing.T) {
			r := start(t, nil)
			p := r.opened("c")
			p.sender(0, "q")
			var burst []byte
			for range 1000 {
				burst = append(burst, encode(0, p.transfer(0, true), volatile("x"))...)
			}
			p.write(burst)
			// What the broker has read counts; a reset may destroy what it hasn't.
			if reset {
				eventually(t, "all read", func() bool { return r.server.Stats().MessagesIn == 1000 })
				_ = p.socket.(*net.TCPConn).SetLinger(0)
			}
			p.socket.Close()
			r.depth("q", 1000, 0)
		})
	}
}

func TestCase277_AbortedDeliveries(t *testing.T) {
	r := start(t, nil)
	p := r.opened("c")
	p.sender(0, "q")
	for i := range 10_000 {
		x := p.transfer(0, i%2 == 0)
		x.More = true
		frames := encode(0, x, []byte("half of it"))
		frames = append(frames, encode(0, &codec.Transfer{Aborted: true})...)
		p.count().frames += 2
		p.write(frames)
		if i%400 == 399 {
			p.barrier() // the window is open again
		}
	}
	p.put(0, data("whole"))
	p.quiet(codec.CodeDetach)
	for _, f := range p.aside {
		if f.code == codec.CodeDisposition || f.code == codec.CodeEnd {
			t.Errorf("unexpected %s", f)
		}
	}
	var next uint32
	for _, f := range p.flows() {
		next = f.NextIncomingID.Value
	}
	if next > p.count().frames {
		t.Errorf("next-incoming-id %d is ahead of %d", next, p.count().frames)
	}
	p.receiver(1, "q", 10)
	unchanged(t, data("whole"), p.receive())
	p.quiet(codec.CodeTransfer)
}

// TestCase277_AbortedByTheBroker: a delivery that is cut off on its way counts
// in the session's windows like any other.
func TestCase277_AbortedByTheBroker(t *testing.T) {
	r := start(t, nil)
	r.load("q", 2, 100<<10)
	p := r.connect()
	p.open(codec.Open{ContainerID: "c", MaxFrameSize: 1024, ChannelMax: 255})
	p.send(&codec.Begin{IncomingWindow: 10, OutgoingWindow: 1 << 30, HandleMax: 10})
	await[codec.Begin](p)
	p.attach(receiverAttach("in", 0, "q"))
	f := &codec.Flow{NextIncomingID: codec.Some(uint32(0)), IncomingWindow: 10, OutgoingWindow: 1, Handle: codec.Some(uint32(0)), DeliveryCount: codec.Some(uint32(0)), LinkCredit: codec.Some(uint32(1))}
	p.send(f)
	for range 10 {
		await[codec.Transfer](p)
	}
	// Ten more frames, and the link is detached in the middle of the message.
	p.send(&codec.Flow{NextIncomingID: codec.Some(uint32(10)), IncomingWindow: 10, OutgoingWindow: 1})
	for range 10 {
		await[codec.Transfer](p)
	}
	p.send(&codec.Detach{Closed: true})
	await[codec.Detach](p)
	r.depth("q", 2, 0)
	p.attach(receiverAttach("in", 0, "q"))
	f.NextIncomingID, f.IncomingWindow, f.LinkCredit = codec.Some(uint32(20)), 1000, codec.Some(uint32(2))
	p.send(f)
	for range 2 {
		if d := p.receive(); len(d.message) < 100<<10 {
			t.Errorf("message of %d bytes", len(d.message))
		}
	}
}

// TestSplitEverywhere is compound scenario 1: one message with all sections,
// cut into two transfers at every offset, and the stream of bytes cut at every offset.
func TestSplitEverywhere(t *testing.T) {
	message := fullMessage(t, bytes.Repeat([]byte("3 KiB of text and more "), 130))
	t.Run("transfers", func(t *testing.T) {
		r := start(t, nil)
		p := r.opened("c")
		p.sender(0, "q")
		p.receiver(1, "q", 1<<20)
		step := 1
		if testing.Short() {
			step = 37
		}
		for cut := 0; cut <= len(message); cut += step {
			first := p.transfer(0, true)
			first.More = true
			p.count().frames += 2
			p.write(append(encode(0, first, message[:cut]), encode(0, &codec.Transfer{}, message[cut:])...))
			d := p.receive()
			unchanged(t, message, d)
			p.dispose(d.id(), d.id(), true, accepted)
			p.aside = nil
		}
	})
	t.Run("bytes", func(t *testing.T) {
		// Everything a short connection says, with the message split in three.
		r := start(t, nil)
		o := codec.Open{ContainerID: "c", MaxFrameSize: 65536, ChannelMax: 10}
		out, in := senderAttach("out", 0, "q"), receiverAttach("in", 1, "q")
		id := &codec.Transfer{Handle: 0, DeliveryID: codec.Some(uint32(0)), DeliveryTag: []byte("t"), More: true}
		var stream []byte
		for _, b := range []body{&o, &codec.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 10}, &out, &in} {
			stream = append(stream, encode(0, b)...)
		}
		f := codec.Flow{NextIncomingID: codec.Some(uint32(0)), IncomingWindow: 100, OutgoingWindow: 100, Handle: codec.Some(uint32(1)), DeliveryCount: codec.Some(uint32(0)), LinkCredit: codec.Some(uint32(1))}
		stream = append(stream, encode(0, &f)...)
		before := append(codec.HeaderAMQP[:], stream...)
		message := message[:0:0]
		message = append(message, fullMessage(t, []byte("short"))...)
		var after []byte
		after = append(after, encode(0, id, message[:30])...)
		after = append(after, encode(0, &codec.Transfer{More: true}, message[30:31])...)
		after = append(after, encode(0, &codec.Transfer{}, message[31:])...)
		run := func(cuts ...int) {
			p := r.pipe() // each Write is one Read there
			all := append(bytes.Clone(before), after...)
			credit, wrote := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(wrote)
				granted := false
				for from, i := 0, 0; ; i++ {
					to := len(all)
					if i < len(cuts) {
						to = cuts[i]
					}
					// Credit must have come before the transfer does.
					if !granted && to >= len(before) {
						p.write(all[from:len(before)])
						<-credit
						from, granted = len(before), true
					}
					p.write(all[from:to])
					if from = to; to == len(all) {
						return
					}
				}
			}()
			if h := p.header(); h != codec.HeaderAMQP {
				t.Fatalf("header is % x", h[:])
			}
			for granted := false; !granted; {
				flow, _ := await[codec.Flow](p)
				granted = flow.Handle == codec.Some(uint32(0)) && flow.LinkCredit.Value > 0
			}
			close(credit)
			d := p.receive()
			<-wrote
			unchanged(t, message, d)
			p.dispose(d.id(), d.id(), true, accepted)
			p.write(encode(0, &codec.Close{}))
			await[codec.Close](p)
			p.socket.Close()
		}
		total := len(before) + len(after)
		step := 1
		if testing.Short() {
			step = 7
		}
		for cut := 1; cut < total; cut += step {
			run(cut)
		}
		each := make([]int, 0, total)
		for cut := 1; cut < total; cut++ {
			each = append(each, cut)
		}
		run(each...)
	})
}
