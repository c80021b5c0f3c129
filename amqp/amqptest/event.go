package amqptest

import (
	"fmt"
	"strings"

	"github.com/letomq/leto/amqp"
)

var kinds = map[amqp.EventKind]string{
	amqp.EventOpened: "open", amqp.EventClosed: "close", amqp.EventFailed: "failed",
	amqp.EventBegun: "begin", amqp.EventEnded: "end", amqp.EventSessionFailed: "session-failed",
	amqp.EventAttached: "attach", amqp.EventDetached: "detach", amqp.EventLinkFailed: "link-failed",
	amqp.EventFlow: "flow", amqp.EventTransfer: "transfer", amqp.EventAborted: "aborted", amqp.EventOutcome: "outcome",
}

// event is an event in words: what it refers to is gone when the script looks.
type event struct {
	kind      string
	fields    []Field
	condition string // of its error
	excused   bool   // a frame that told the peer of it was read
}

func record(ev *amqp.Event) event {
	e := event{kind: kinds[ev.Kind]}
	add := func(name string, v any) { e.fields = append(e.fields, Field{name, fmt.Sprint(v)}) }
	if ev.Err != nil {
		e.condition = string(ev.Err.Condition)
		add("error", ev.Err.Condition)
		add("error.description", ev.Err.Description)
	} else {
		add("error", "null")
	}
	if ev.Link != nil {
		add("name", ev.Link.Name)
		role := "receiver"
		if ev.Link.Sender() {
			role = "sender"
		}
		add("role", role)
	}
	switch ev.Kind {
	case amqp.EventOpened:
		add("container-id", ev.Open.ContainerID)
		add("max-frame-size", ev.Open.MaxFrameSize)
	case amqp.EventDetached:
		add("closed", ev.Closed)
	case amqp.EventFlow:
		add("credit", ev.Link.Credit())
		add("drain", ev.Link.Draining())
		add("available", ev.Link.PeerAvailable())
		add("txn-id", showOctets(ev.TxnID))
	case amqp.EventTransfer, amqp.EventAborted:
		add("delivery-id", ev.DeliveryID)
		add("delivery-tag", showOctets(ev.Tag))
		add("payload", showOctets(ev.Payload))
		add("payload-size", len(ev.Payload))
		add("first", ev.First)
		add("last", ev.Last)
		add("settled", ev.Settled)
		add("message-format", ev.MessageFormat)
		add("transactional", ev.State.Transactional)
		add("txn-id", showOctets(ev.State.TxnID))
	case amqp.EventOutcome:
		add("delivery-id", ev.DeliveryID)
		add("settled", ev.Settled)
		add("state", ev.State.Kind)
		add("ref", ev.Ref)
		add("transactional", ev.State.Transactional)
		add("txn-id", showOctets(ev.State.TxnID))
	case amqp.EventLinkFailed:
		if ev.State != nil && ev.State.Transactional {
			add("txn-id", showOctets(ev.State.TxnID))
		}
	}
	return e
}

// routine events may pass unread.
func (e event) routine() bool {
	switch e.kind {
	case "open", "close", "begin", "end", "attach", "detach", "flow":
		return true
	}
	return e.excused
}

func (e event) String() string {
	var b strings.Builder
	b.WriteString(e.kind)
	for _, f := range e.fields {
		if f.Text != "null" && f.Text != "" {
			fmt.Fprintf(&b, " %s=%s", f.Name, f.Text)
		}
	}
	return b.String()
}

// excuse marks the failure whose condition a frame has told the peer.
func (p *player) excuse(condition string) {
	for i := range p.events {
		e := &p.events[i]
		if strings.HasSuffix(e.kind, "failed") && e.condition == condition && !e.excused {
			e.excused = true
			return
		}
	}
}

func (p *player) eventNote() string {
	for _, e := range p.events {
		if strings.HasSuffix(e.kind, "failed") {
			return "; event: " + e.String()
		}
	}
	return ""
}

// expectEvent compares the next event, passing over routine ones of another kind.
func (p *player) expectEvent(l Line) error {
	for len(p.events) > 0 {
		e := p.events[0]
		if e.kind != l.Verb {
			if !e.routine() {
				return fmt.Errorf("instead came: %s", e)
			}
			p.events = p.events[1:]
			continue
		}
		p.events = p.events[1:]
		for _, w := range l.Fields {
			if err := e.match(w); err != nil {
				return fmt.Errorf("%w\n    in: %s", err, e)
			}
		}
		return nil
	}
	if l.Verb == "nothing" {
		return nil
	}
	return fmt.Errorf("nothing happened")
}

func (e event) match(w Field) error {
	for _, f := range e.fields {
		if f.Name != w.Name {
			continue
		}
		want := w.Text
		if b, err := octets(want); err == nil && (f.Name == "payload" || f.Name == "delivery-tag" || f.Name == "txn-id") {
			want = showOctets(b)
		}
		if f.Text != want {
			return fmt.Errorf("%s is %s, not %s", w.Name, f.Text, want)
		}
		return nil
	}
	return fmt.Errorf("no field %q", w.Name)
}
