package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/letomq/leto/codec"
)

// TestChurn is compound scenario 10: connections that come and go, in good
// order or at any stage not.
func TestChurn(t *testing.T) {
	r := start(t, nil)
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	warm := r.opened("warm")
	warm.close()
	r.idle()
	before := runtime.NumGoroutine()
	const workers = 8
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range rounds / workers {
				churn(r, random, fmt.Sprintf("%d-%d", w, i))
			}
		})
	}
	group.Wait()
	eventually(t, "all accepted", func() bool { return r.server.Stats().ConnectionsTotal == uint64(rounds/workers*workers+1) })
	r.idle()
	eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
	for _, q := range r.broker.Queues() {
		if q.Consumers != 0 || q.Delivering != 0 {
			t.Errorf("queue is %+v", q)
		}
		if q.Temporary {
			t.Errorf("temporary queue %s is left", q.Name)
		}
	}
	for _, a := range r.broker.Addresses() {
		if a.Producers != 0 || a.Temporary {
			t.Errorf("address is %+v", a)
		}
	}
	if m := r.broker.Totals(); m.Messages == 0 || m.Memory == 0 {
		t.Errorf("totals are %+v: nothing was sent", m)
	}
	// What is left can be taken, and then nothing is left.
	p := r.opened("rest")
	for i, queue := range []string{"churn", "DLQ"} {
		in := receiverAttach(queue, uint32(i), queue)
		in.SndSettleMode = codec.SettleSettled
		p.attach(in)
		p.credit(uint32(i), 0, 1<<20, true)
		p.drained(1 << 20)
		p.aside = nil
	}
	eventually(t, "no memory", func() bool { return r.broker.Totals().Memory == 0 })
}

// churn is the life of one connection. Nothing in it fails the test: the broker
// may be faster or slower than the socket goes.
func churn(r *rig, random *rand.Rand, container string) {
	socket, err := net.Dial("tcp", r.addr)
	if err != nil {
		return
	}
	defer socket.Close()
	_ = socket.SetDeadline(time.Now().Add(patience))
	o := codec.Open{ContainerID: container, MaxFrameSize: 65536, ChannelMax: 10}
	out, in := senderAttach("out", 0, "churn"), receiverAttach("in", 1, "churn")
	dynamic := receiverAttach("dynamic", 2, "")
	dynamic.Source = &codec.Source{Dynamic: true}
	stages := [][]byte{
		codec.HeaderAMQP[:],
		encode(0, &o),
		encode(0, &codec.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 10}),
		encode(0, &out),
		encode(0, &in),
		encode(0, &dynamic),
		encode(0, &codec.Flow{NextIncomingID: codec.Some(uint32(0)), IncomingWindow: 100, OutgoingWindow: 100, Handle: codec.Some(uint32(1)), DeliveryCount: codec.Some(uint32(0)), LinkCredit: codec.Some(uint32(1))}),
		encode(0, &codec.Transfer{Handle: 0, DeliveryID: codec.Some(uint32(0)), DeliveryTag: []byte("t"), MessageFormat: codec.Some(uint32(0))}, data("x")),
		encode(0, &codec.Disposition{Role: codec.RoleReceiver, First: 0, Last: codec.Some(uint32(0)), Settled: true, State: codec.DeliveryState{Outcome: accepted}}),
		encode(0, &codec.Detach{Handle: 0, Closed: true}),
		encode(0, &codec.End{}),
		encode(0, &codec.Close{}),
	}
	end := random.IntN(len(stages) + 1)
	p := &peer{t: r.t, socket: socket, counts: map[uint16]*counts{}}
	for i, frames := range stages[:end] {
		if _, err := socket.Write(frames); err != nil {
			return
		}
		if i == 6 { // the transfer needs credit to have come
			p.buf = nil
			if !p.granted() {
				return
			}
		}
	}
	switch random.IntN(3) {
	case 0:
		_ = socket.(*net.TCPConn).SetLinger(0)
	case 1:
		if end == len(stages) {
			buf := make([]byte, 4096)
			for err == nil {
				_, err = socket.Read(buf)
			}
		}
	}
}

// granted reads until the link with handle 0 has credit.
func (p *peer) granted() bool {
	if p.fill(8) != nil {
		return false
	}
	p.take(8)
	for {
		f, err := p.read()
		if err != nil {
			return false
		}
		var v codec.Flow
		if f.code == codec.CodeFlow {
			if _, err := v.Decode(f.fields); err == nil && v.Handle.Set && v.LinkCredit.Value > 0 {
				return true
			}
		}
	}
}
