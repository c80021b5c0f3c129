package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// patience is how long a test waits for what must come. Nothing waits for it
// to pass unless the test fails.
const patience = 10 * time.Second

// peer is a client that writes frames one by one, legal or not, and looks at
// each frame that comes back. It keeps no state of the protocol.
type peer struct {
	t       testing.TB
	socket  net.Conn
	buf     []byte
	aside   []frame // read, but passed over by await
	channel uint16  // that frames are sent on
	counts  map[uint16]*counts
}

// counts are what a sender counts in one session.
type counts struct {
	next   uint32 // delivery-id of the next delivery
	frames uint32 // transfer-id of the next frame
}

func (p *peer) count() *counts {
	c := p.counts[p.channel]
	if c == nil {
		c = &counts{}
		p.counts[p.channel] = c
	}
	return c
}

// frame is one frame as it came.
type frame struct {
	channel uint16
	kind    byte
	code    codec.Code
	fields  []byte
	body    []byte
}

// performative is a pointer to one of the codec's frame bodies.
type performative[P any] interface {
	*P
	Decode([]byte) ([]byte, error)
	Append([]byte) []byte
}

type body interface{ Append([]byte) []byte }

var codes = map[string]codec.Code{
	"*codec.Open": codec.CodeOpen, "*codec.Begin": codec.CodeBegin, "*codec.Attach": codec.CodeAttach,
	"*codec.Flow": codec.CodeFlow, "*codec.Transfer": codec.CodeTransfer, "*codec.Disposition": codec.CodeDisposition,
	"*codec.Detach": codec.CodeDetach, "*codec.End": codec.CodeEnd, "*codec.Close": codec.CodeClose,
	"*codec.SASLMechanisms": codec.CodeSASLMechanisms, "*codec.SASLOutcome": codec.CodeSASLOutcome,
}

// wrap makes a peer of a socket that the broker has accepted.
func wrap(t testing.TB, socket net.Conn) *peer {
	t.Cleanup(func() { socket.Close() })
	return &peer{t: t, socket: socket, counts: map[uint16]*counts{}}
}

// connect makes a TCP connection to the broker and writes nothing.
func (r *rig) connect() *peer {
	r.t.Helper()
	socket, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return wrap(r.t, socket)
}

// pipe connects without any buffer between: the broker's writer stands still
// whenever the peer doesn't read.
func (r *rig) pipe() *peer {
	ours, theirs := net.Pipe()
	r.server.accept(theirs, r.server.machineConfig(r.listen))
	return wrap(r.t, ours)
}

// opened returns a peer with a connection open and a session begun on channel 0.
func (r *rig) opened(container string) *peer {
	r.t.Helper()
	p := r.connect()
	p.open(codec.Open{ContainerID: container, MaxFrameSize: codec.DefaultMaxFrameSize, ChannelMax: 255})
	p.begin()
	return p
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if err := p.socket.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.socket.Write(b); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// send writes one frame on the peer's channel.
func (p *peer) send(b body, payload ...[]byte) {
	p.t.Helper()
	if _, ok := b.(*codec.Transfer); ok {
		p.count().frames++
	}
	p.write(encode(p.channel, b, payload...))
}

// encode returns a frame.
func encode(channel uint16, b body, payload ...[]byte) []byte {
	out := codec.BeginFrame(nil, codec.FrameAMQP, channel)
	out = b.Append(out)
	for _, part := range payload {
		out = append(out, part...)
	}
	codec.EndFrame(out, 0)
	return out
}

// rawFrame returns a frame around any bytes.
func rawFrame(kind byte, channel uint16, content []byte) []byte {
	out := codec.BeginFrame(nil, kind, channel)
	out = append(out, content...)
	codec.EndFrame(out, 0)
	return out
}

// fill reads until n bytes are there.
func (p *peer) fill(n int) error {
	_ = p.socket.SetReadDeadline(time.Now().Add(patience))
	for len(p.buf) < n {
		more := make([]byte, max(n-len(p.buf), 4096))
		got, err := p.socket.Read(more)
		p.buf = append(p.buf, more[:got]...)
		if err != nil && len(p.buf) < n {
			return err
		}
	}
	return nil
}

func (p *peer) take(n int) []byte {
	b := p.buf[:n:n]
	p.buf = p.buf[n:]
	return b
}

// header reads a protocol header.
func (p *peer) header() codec.ProtocolHeader {
	p.t.Helper()
	if err := p.fill(8); err != nil {
		p.t.Fatalf("protocol header: %v", err)
	}
	return codec.ProtocolHeader(p.take(8))
}

// read returns the next frame; heartbeats are passed over.
func (p *peer) read() (frame, error) {
	for {
		if err := p.fill(8); err != nil {
			return frame{}, err
		}
		h, err := codec.ReadFrameHeader(p.buf)
		if err != nil {
			return frame{}, err
		}
		if err := p.fill(int(h.Size)); err != nil {
			return frame{}, err
		}
		content := p.take(int(h.Size))[int(h.DataOffset)*4:]
		if len(content) == 0 {
			continue
		}
		f := frame{channel: h.Channel, kind: h.Type, body: content}
		f.code, f.fields, err = codec.ReadDescriptor(content)
		return f, err
	}
}

// frame returns the next frame, one passed over before first.
func (p *peer) frame() frame {
	p.t.Helper()
	if len(p.aside) > 0 {
		f := p.aside[0]
		p.aside = p.aside[1:]
		return f
	}
	f, err := p.read()
	if err != nil {
		p.t.Fatalf("frame: %v", err)
	}
	return f
}

// await returns the next frame of one kind and what follows it. Frames of other kinds
// stay for later; a frame that ends something unexpectedly fails the test.
func await[P any, PP performative[P]](p *peer) (P, []byte) {
	p.t.Helper()
	var v P
	code := codes[fmt.Sprintf("%T", PP(&v))]
	for i, f := range p.aside {
		if f.code == code {
			p.aside = append(p.aside[:i:i], p.aside[i+1:]...)
			return v, parse[P, PP](p, &v, f)
		}
	}
	for {
		f, err := p.read()
		if err != nil {
			p.t.Fatalf("waiting for %v: %v", code, err)
		}
		if f.code == code {
			payload := parse[P, PP](p, &v, f)
			return v, payload
		}
		switch f.code {
		case codec.CodeClose, codec.CodeEnd, codec.CodeDetach:
			p.t.Fatalf("waiting for %v: got %s", code, f)
		}
		p.aside = append(p.aside, f)
	}
}

func parse[P any, PP performative[P]](p *peer, v *P, f frame) []byte {
	p.t.Helper()
	rest, err := PP(v).Decode(f.fields)
	if err != nil {
		p.t.Fatalf("%s: %v", f, err)
	}
	return rest
}

// strict returns the next frame, which must be of one kind.
func strict[P any, PP performative[P]](p *peer) (P, []byte) {
	p.t.Helper()
	var v P
	f := p.frame()
	if code := codes[fmt.Sprintf("%T", PP(&v))]; f.code != code {
		p.t.Fatalf("want %v, got %s", code, f)
	}
	return v, parse[P, PP](p, &v, f)
}

// String shows the frame for a failure.
func (f frame) String() string {
	v, _, err := codec.ReadValue(f.body)
	if err != nil {
		return fmt.Sprintf("%v % x", f.code, f.body)
	}
	return fmt.Sprintf("%v on %d: %v", f.code, f.channel, v.(codec.Described).Value)
}

// without drops the frames of a kind that have arrived by the next frame of another kind.
func (p *peer) without(code codec.Code) *peer {
	p.t.Helper()
	for {
		kept := p.aside[:0:0]
		for _, f := range p.aside {
			if f.code != code {
				kept = append(kept, f)
			}
		}
		if p.aside = kept; len(kept) > 0 {
			return p
		}
		f, err := p.read()
		if err != nil {
			p.t.Fatal(err)
		}
		p.aside = append(p.aside, f)
	}
}

// flows drops the flows that have arrived so far and returns them.
func (p *peer) flows() []codec.Flow {
	p.t.Helper()
	var flows []codec.Flow
	kept := p.aside[:0:0]
	for _, f := range p.aside {
		if f.code != codec.CodeFlow {
			kept = append(kept, f)
			continue
		}
		var v codec.Flow
		parse(p, &v, f)
		flows = append(flows, v)
	}
	p.aside = kept
	return flows
}

// barrier returns once the broker has worked through everything sent before
// and what it had to write has arrived, as far as windows and credit go; the
// frames are in aside. It begins and ends another session, twice: the answer to
// the second begin stands behind everything that went out with the first one's.
func (p *peer) barrier() {
	p.t.Helper()
	before := p.channel
	p.channel = barrierChannel
	for range 2 {
		p.send(&codec.Begin{IncomingWindow: 1, OutgoingWindow: 1})
		p.send(&codec.End{})
		var theirs uint16
		for ended := false; !ended; {
			f, err := p.read()
			if err != nil {
				p.t.Fatalf("barrier: %v", err)
			}
			switch {
			case f.code == codec.CodeBegin && p.answers(f):
				theirs = f.channel
			case f.code == codec.CodeEnd && f.channel == theirs:
				ended = true
			default:
				p.aside = append(p.aside, f)
			}
		}
	}
	p.channel = before
}

// barrierChannel is used by barrier alone.
const barrierChannel = 201

func (p *peer) answers(f frame) bool {
	var b codec.Begin
	parse(p, &b, f)
	return b.RemoteChannel.Value == p.channel
}

func (p *peer) sessionFlow() *codec.Flow {
	return &codec.Flow{NextIncomingID: codec.Some(uint32(0)), IncomingWindow: 1 << 30, NextOutgoingID: p.count().frames, OutgoingWindow: 1 << 30}
}

// quiet fails the test when frames of that kind have come unasked by the time of a barrier.
func (p *peer) quiet(code codec.Code) {
	p.t.Helper()
	p.barrier()
	for _, f := range p.aside {
		if f.code == code {
			p.t.Fatalf("unexpected %s", f)
		}
	}
}

// eof waits until the broker has closed the socket; frames before that stay aside.
func (p *peer) eof() {
	p.t.Helper()
	for {
		f, err := p.read()
		switch {
		case err == nil:
			p.aside = append(p.aside, f)
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.t.Fatal("the broker left the connection open")
		case !errors.Is(err, io.EOF) && len(p.buf) > 0:
			p.t.Fatalf("connection ended with %d bytes of a frame: %v", len(p.buf), err)
		}
		p.socket.Close()
		return
	}
}

// open exchanges headers and opens; the broker's is returned.
func (p *peer) open(o codec.Open) codec.Open {
	p.t.Helper()
	p.write(append(codec.HeaderAMQP[:], encode(0, &o)...))
	if h := p.header(); h != codec.HeaderAMQP {
		p.t.Fatalf("header is % x", h[:])
	}
	answer, _ := strict[codec.Open](p)
	return answer
}

// close closes the connection in good order.
func (p *peer) close() {
	p.t.Helper()
	p.write(encode(0, &codec.Close{}))
	c, _ := await[codec.Close](p)
	p.condition(c.Error, "")
	p.eof()
	p.socket.Close()
}

func (p *peer) begin() codec.Begin {
	p.t.Helper()
	p.send(&codec.Begin{NextOutgoingID: 0, IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30, HandleMax: 1023})
	b, _ := await[codec.Begin](p)
	return b
}

// senderAttach is the attach of a peer that sends to address.
func senderAttach(name string, handle uint32, address string) codec.Attach {
	return codec.Attach{
		Name: name, Handle: handle, Role: codec.RoleSender, SndSettleMode: codec.SettleMixed,
		Source: &codec.Source{}, Target: &codec.Target{Address: codec.Some(address)},
		InitialDeliveryCount: codec.Some(uint32(0)),
	}
}

// receiverAttach is the attach of a peer that consumes from address.
func receiverAttach(name string, handle uint32, address string) codec.Attach {
	return codec.Attach{
		Name: name, Handle: handle, Role: codec.RoleReceiver, SndSettleMode: codec.SettleMixed,
		Source: &codec.Source{Address: codec.Some(address)}, Target: &codec.Target{},
	}
}

// attach attaches a link and returns the broker's answer, which must accept it.
func (p *peer) attach(a codec.Attach) codec.Attach {
	p.t.Helper()
	p.send(&a)
	answer, _ := await[codec.Attach](p)
	if answer.Name != a.Name || answer.Role == a.Role {
		p.t.Fatalf("attach of %q was answered with that of %q, role %v", a.Name, answer.Name, answer.Role)
	}
	if a.Role == codec.RoleReceiver && answer.Source == nil || a.Role == codec.RoleSender && answer.Target == nil {
		d, _ := strict[codec.Detach](p)
		p.t.Fatalf("attach of %q was refused: %v", a.Name, text(d.Error))
	}
	return answer
}

// refused attaches a link, which must be refused in the form of [2.6.3]: a null
// terminus on the broker's side and a closing detach. The peer's detach follows.
func (p *peer) refused(a codec.Attach) (codec.Attach, *codec.ErrorInfo) {
	p.t.Helper()
	p.send(&a)
	answer, _ := await[codec.Attach](p)
	if a.Role == codec.RoleReceiver && answer.Source != nil || a.Role == codec.RoleSender && (answer.Target != nil || answer.Coordinator != nil) {
		p.t.Fatalf("attach of %q was accepted", a.Name)
	}
	kept := p.aside
	p.aside = nil
	d, _ := strict[codec.Detach](p) // right behind it
	p.aside = kept
	if !d.Closed || d.Error == nil || d.Handle != answer.Handle {
		p.t.Fatalf("refusal's detach is %+v", d)
	}
	p.send(&codec.Detach{Handle: a.Handle, Closed: true})
	return answer, d.Error
}

func text(e *codec.ErrorInfo) string {
	if e == nil {
		return "no error"
	}
	return string(e.Condition) + ": " + e.Description
}

// sender attaches a link to send to address on handle.
func (p *peer) sender(handle uint32, address string) codec.Attach {
	p.t.Helper()
	return p.attach(senderAttach(fmt.Sprintf("out-%d-%s", handle, address), handle, address))
}

// receiver attaches a link to consume from address on handle, and gives credit.
func (p *peer) receiver(handle uint32, address string, credit uint32) codec.Attach {
	p.t.Helper()
	a := p.attach(receiverAttach(fmt.Sprintf("in-%d-%s", handle, address), handle, address))
	if credit > 0 {
		p.credit(handle, 0, credit, false)
	}
	return a
}

// credit gives a receiving link credit: count deliveries have been seen.
func (p *peer) credit(handle, count, credit uint32, drain bool) {
	p.t.Helper()
	p.send(p.creditFlow(handle, count, credit, drain))
}

func (p *peer) creditFlow(handle, count, credit uint32, drain bool) *codec.Flow {
	f := p.sessionFlow()
	f.Handle, f.DeliveryCount, f.LinkCredit, f.Drain = codec.Some(handle), codec.Some(count), codec.Some(credit), drain
	return f
}

// transfer returns the transfer of one whole delivery; each frame of a peer is one delivery.
func (p *peer) transfer(handle uint32, settled bool) *codec.Transfer {
	id := p.count().next
	p.count().next++
	return &codec.Transfer{
		Handle: handle, DeliveryID: codec.Some(id), DeliveryTag: binary.BigEndian.AppendUint32(nil, id),
		MessageFormat: codec.Some(uint32(0)), Settled: codec.Some(settled),
	}
}

// deliver sends a message in as many frames as it takes.
func (p *peer) deliver(first *codec.Transfer, message []byte) {
	p.t.Helper()
	const room = 60_000
	for x := first; ; x = (&codec.Transfer{Handle: first.Handle}) {
		n := min(len(message), room)
		x.More = n < len(message)
		p.send(x, message[:n])
		if message = message[n:]; !x.More {
			return
		}
	}
}

// post sends one message unsettled and returns its outcome.
func (p *peer) post(handle uint32, message []byte) codec.Outcome {
	p.t.Helper()
	p.deliver(p.transfer(handle, false), message)
	d, _ := await[codec.Disposition](p)
	if d.Role != codec.RoleReceiver || !d.Settled || d.First != p.count().next-1 || d.Last.Or(d.First) != d.First {
		p.t.Fatalf("disposition is %+v, for delivery %d", d, p.count().next-1)
	}
	return d.State.Outcome
}

// put posts a message that must be accepted.
func (p *peer) put(handle uint32, message []byte) {
	p.t.Helper()
	if o := p.post(handle, message); o.Kind != codec.StateAccepted {
		p.t.Fatalf("outcome is %v: %s", o.Kind, text(o.Error))
	}
}

// accepted waits until n deliveries have been accepted, one by one or in ranges.
func (p *peer) accepted(n int) {
	p.t.Helper()
	for n > 0 {
		d, _ := await[codec.Disposition](p)
		if d.Role != codec.RoleReceiver || !d.Settled || d.State.Kind != codec.StateAccepted {
			p.t.Fatalf("disposition is %+v", d)
		}
		n -= int(d.Last.Or(d.First)-d.First) + 1
	}
}

// dispose gives outcomes to deliveries first to last.
func (p *peer) dispose(first, last uint32, settled bool, outcome codec.Outcome) {
	p.t.Helper()
	p.send(&codec.Disposition{Role: codec.RoleReceiver, First: first, Last: codec.Some(last), Settled: settled, State: codec.DeliveryState{Outcome: outcome}})
}

// drained waits for the broker's answer to a drain: no credit, and everything counted.
func (p *peer) drained(count uint32) codec.Flow {
	p.t.Helper()
	for {
		f, _ := await[codec.Flow](p)
		if !f.Handle.Set || f.DeliveryCount.Value != count || !f.Drain {
			continue
		}
		if f.LinkCredit != codec.Some(uint32(0)) {
			p.t.Fatalf("drained flow has link-credit %+v", f.LinkCredit)
		}
		return f
	}
}

// delivery is a message the broker sent.
type delivery struct {
	codec.Transfer
	message []byte
}

func (d delivery) id() uint32 { return d.DeliveryID.Value }

// receive returns the next whole delivery.
func (p *peer) receive() delivery {
	p.t.Helper()
	first, payload := await[codec.Transfer](p)
	d := delivery{first, append([]byte(nil), payload...)}
	for more := first.More; more; {
		t, payload := await[codec.Transfer](p)
		if t.Handle != first.Handle {
			p.t.Fatalf("transfer for handle %d within a delivery on %d", t.Handle, first.Handle)
		}
		d.message = append(d.message, payload...)
		more = t.More
	}
	return d
}

// sections splits a delivery and decodes its header.
func (d delivery) sections(t testing.TB) (codec.Header, codec.Sections) {
	t.Helper()
	s, err := codec.Split(d.message)
	if err != nil {
		t.Fatalf("delivery: %v", err)
	}
	var h codec.Header
	if s.Header != nil {
		if err := h.Decode(s.Header); err != nil {
			t.Fatal(err)
		}
	}
	return h, s
}

// annotation returns one message annotation of a delivery.
func (d delivery) annotation(t testing.TB, key string) (any, bool) {
	t.Helper()
	_, s := d.sections(t)
	return annotationOf(t, s.MessageAnnotations, key)
}

func annotationOf(t testing.TB, section []byte, key string) (any, bool) {
	t.Helper()
	if section == nil {
		return nil, false
	}
	v, _, err := codec.ReadValue(section)
	if err != nil {
		t.Fatal(err)
	}
	return v.(codec.Described).Value.(codec.Map).Get(key)
}

// body returns the data section's content.
func (d delivery) body(t testing.TB) string {
	t.Helper()
	_, s := d.sections(t)
	v, _, err := codec.ReadValue(s.Body)
	if err != nil {
		t.Fatalf("body % x: %v", s.Body, err)
	}
	data, ok := v.(codec.Described).Value.([]byte)
	if !ok {
		t.Fatalf("body is %v", v)
	}
	return string(data)
}

// data is a message with nothing but a data section.
func data(s string) []byte { return codec.AppendData(nil, []byte(s)) }

// volatile is a message that says it needn't survive.
func volatile(s string) []byte {
	h := codec.Header{Durable: codec.Some(false)}
	return codec.AppendData(h.Append(nil), []byte(s))
}

// ended waits for the broker's end of the session over a fault.
func (p *peer) ended(want codec.Symbol) *codec.ErrorInfo {
	p.t.Helper()
	e, _ := await[codec.End](p)
	return p.condition(e.Error, want)
}

// detached waits for the broker's closing detach over a fault.
func (p *peer) detached(want codec.Symbol) *codec.ErrorInfo {
	p.t.Helper()
	d, _ := await[codec.Detach](p)
	if !d.Closed {
		p.t.Fatalf("detach doesn't close: %s", text(d.Error))
	}
	return p.condition(d.Error, want)
}

// closed waits for the broker's close over a fault, answers it and waits for the end of the socket.
func (p *peer) closed(want codec.Symbol) *codec.ErrorInfo {
	p.t.Helper()
	c, _ := await[codec.Close](p)
	e := p.condition(c.Error, want)
	_ = p.socket.SetWriteDeadline(time.Now().Add(patience))
	_, _ = p.socket.Write(encode(0, &codec.Close{})) // where framing is lost, nobody reads it
	p.eof()
	return e
}

func (p *peer) condition(e *codec.ErrorInfo, want codec.Symbol) *codec.ErrorInfo {
	p.t.Helper()
	switch {
	case want == "" && e != nil:
		p.t.Fatalf("error is %s, want none", text(e))
	case want != "" && (e == nil || e.Condition != want):
		p.t.Fatalf("error is %s, want %s", text(e), want)
	}
	return e
}

var (
	accepted = codec.Outcome{Kind: codec.StateAccepted}
	released = codec.Outcome{Kind: codec.StateReleased}
	failed   = codec.Outcome{Kind: codec.StateModified, DeliveryFailed: true}
)

func rejectedWith(condition codec.Symbol, description string) codec.Outcome {
	return codec.Outcome{Kind: codec.StateRejected, Error: &codec.ErrorInfo{Condition: condition, Description: description}}
}

// eventually polls for what another goroutine brings about and no event tells of.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// depth waits until a queue has that many messages waiting and with consumers.
func (r *rig) depth(queue string, waiting, delivering int) {
	r.t.Helper()
	var messages, out int
	defer func() {
		if r.t.Failed() {
			r.t.Logf("queue %s: %d waiting, %d delivering", queue, messages, out)
		}
	}()
	eventually(r.t, fmt.Sprintf("queue %s: %d waiting, %d delivering", queue, waiting, delivering), func() bool {
		messages, out = 0, 0
		for _, q := range r.broker.Queues() {
			if q.Name == queue {
				messages, out = q.Messages, q.Delivering
			}
		}
		return messages == waiting && out == delivering
	})
}

// load puts n messages of a size into a queue, and leaves no connection behind.
func (r *rig) load(queue string, n, size int) {
	r.t.Helper()
	p := r.opened("load")
	p.sender(0, queue)
	for range n {
		p.put(0, volatile(strings.Repeat("x", size)))
	}
	p.close()
	eventually(r.t, "the loader gone", func() bool { return r.server.Stats().Links == 0 })
}

// idle waits until nothing is connected and checks the gauges.
func (r *rig) idle() {
	r.t.Helper()
	eventually(r.t, "all gauges at 0", func() bool {
		s := r.server.Stats()
		return s.Connections == 0 && s.Sessions == 0 && s.Links == 0 && s.PartialBytes == 0
	})
}

// Conditions by short names.
const (
	notFound       = amqp.ConditionNotFound
	notAllowed     = amqp.ConditionNotAllowed
	invalidField   = amqp.ConditionInvalidField
	decodeError    = amqp.ConditionDecodeError
	limitExceeded  = amqp.ConditionResourceLimitExceeded
	notImplemented = amqp.ConditionNotImplemented
)
