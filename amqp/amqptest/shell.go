package amqptest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
)

// shell is what stands behind the machine: it answers what wants an answer and
// does what lines with ! say.
type shell struct {
	session *amqp.Session
	link    *amqp.Link
	links   map[string]*amqp.Link
	// what the pending event is about
	asked  *codec.Attach
	closed bool
	ended  *amqp.Session
	ref    uint64

	returned int // by the last end-acquisition
}

func (s *shell) event(p *player, ev *amqp.Event, answer bool) {
	switch ev.Kind {
	case amqp.EventOpened:
		if answer {
			p.conn.Accept(nil)
		}
	case amqp.EventClosed:
		if answer {
			p.conn.Close(nil)
		}
	case amqp.EventBegun:
		s.session = ev.Session
	case amqp.EventEnded:
		s.ended = ev.Session
		if answer {
			ev.Session.End(nil)
		}
	case amqp.EventAttached:
		if s.links == nil {
			s.links = map[string]*amqp.Link{}
		}
		s.link, s.links[ev.Link.Name], s.asked = ev.Link, ev.Link, ev.Attach
		if answer {
			ev.Link.Accept(termsOf(ev.Attach))
		}
	case amqp.EventDetached:
		s.link, s.closed = ev.Link, ev.Closed
		if answer {
			ev.Link.Detach(ev.Closed, nil)
		}
	}
}

func termsOf(a *codec.Attach) amqp.Terms {
	return amqp.Terms{Source: a.Source, Target: a.Target, Coordinator: a.Coordinator, SndSettleMode: a.SndSettleMode, RcvSettleMode: a.RcvSettleMode}
}

// errorOf reads a condition and a description from the words.
func errorOf(words []string) *amqp.Error {
	if len(words) == 0 {
		return nil
	}
	return &amqp.Error{Condition: codec.Symbol(words[0]), Description: unquote(strings.Join(words[1:], " "))}
}

// act does what a ! line says.
func (p *player) act(l Line) error {
	s := &p.shell
	link := s.link
	if name := l.take("link", ""); name != "" {
		link = s.links[name]
	}
	if link == nil && !strings.Contains("accept refuse close begin attach end", l.Verb) {
		return fmt.Errorf("no link")
	}
	pending := p.pending
	switch l.Verb {
	case "accept", "refuse", "detach", "end", "close", "leave":
		p.pending = ""
	}
	err := p.perform(l, s, link, pending)
	p.pump()
	return err
}

func (p *player) perform(l Line, s *shell, link *amqp.Link, pending string) error {
	switch l.Verb {
	case "accept":
		if pending == "open" {
			p.conn.Accept(nil)
			return nil
		}
		return p.acceptLink(l, link)
	case "refuse":
		if pending == "open" {
			p.conn.Refuse(errorOf(l.Words))
			return nil
		}
		link.Refuse(errorOf(l.Words))
	case "detach":
		closed := l.take("closed", strconv.FormatBool(s.closed)) == "true"
		link.Detach(closed, errorOf(l.Words))
	case "fail":
		link.Fail(errorOf(l.Words))
	case "end":
		session := s.session
		if pending == "end" || session == nil {
			session = s.ended
		}
		session.End(errorOf(l.Words))
	case "close":
		p.conn.Close(errorOf(l.Words))
	case "begin":
		s.session = p.conn.Begin()
	case "attach":
		return p.attach(l, s)
	case "grant":
		n, err := strconv.ParseUint(l.Words[0], 0, 32)
		link.Grant(uint32(n))
		return err
	case "available":
		n, err := strconv.ParseUint(l.Words[0], 0, 32)
		link.SetAvailable(uint32(n))
		return err
	case "drained":
		link.Drained()
	case "takeback":
		for {
			if _, ok := link.TakeBack(); !ok {
				return nil
			}
		}
	case "send":
		return p.send(l, link)
	case "dispose", "settle":
		return dispose(l, link.Session())
	case "end-acquisition": // commit or rollback, txn=…
		txn, err := transactionOf(&l)
		if err != nil {
			return err
		}
		s.returned = len(link.EndAcquisition(txn, l.Words[0] == "rollback"))
	case "write-outcomes":
		p.conn.WriteOutcomes()
	case "leave": // the answer comes later
	default:
		return fmt.Errorf("shell can't %s", l.Verb)
	}
	return nil
}

func (p *player) acceptLink(l Line, link *amqp.Link) error {
	asked := *p.shell.asked
	for _, f := range l.Fields {
		if err := setField(&asked, f.Name, f.Text); err != nil {
			return err
		}
	}
	t := termsOf(&asked)
	t.MaxMessageSize = asked.MaxMessageSize
	if _, ok := l.field("max-message-size"); !ok {
		t.MaxMessageSize = 0
	}
	link.Accept(t)
	return nil
}

func (p *player) attach(l Line, s *shell) error {
	a := codec.Attach{SndSettleMode: codec.SettleMixed, Source: new(codec.Source), Target: new(codec.Target)}
	a.Source.Address, a.Target.Address = codec.Some("q"), codec.Some("q")
	for _, f := range l.Fields {
		if err := setField(&a, f.Name, f.Text); err != nil {
			return err
		}
	}
	t := termsOf(&a)
	t.MaxMessageSize = a.MaxMessageSize
	s.link = s.session.Attach(a.Name, a.Role, t)
	if s.link == nil {
		return fmt.Errorf("the machine can't attach")
	}
	if s.links == nil {
		s.links = map[string]*amqp.Link{}
	}
	s.links[a.Name] = s.link
	return nil
}

func (p *player) send(l Line, link *amqp.Link) error {
	body, err := octets(l.Words[0])
	if err != nil {
		return err
	}
	p.shell.ref++
	m := amqp.Sending{Body: body, Ref: l.take("ref", strconv.FormatUint(p.shell.ref, 10)), RefN: p.shell.ref}
	if m.TxnID, err = transactionOf(&l); err != nil {
		return err
	}
	for _, w := range l.Words[1:] {
		if w != "settled" {
			return fmt.Errorf("send %s", w)
		}
		m.Settled = true
	}
	if !link.Send(m) {
		return fmt.Errorf("the link can't send")
	}
	return nil
}

// transactionOf reads txn=; nil: none is named.
func transactionOf(l *Line) ([]byte, error) {
	if text := l.take("txn", ""); text != "" {
		return octets(text)
	}
	return nil, nil
}

// dispose reads "0 accepted" or "0-9 rejected condition".
func dispose(l Line, s *amqp.Session) error {
	from, to, isRange := strings.Cut(l.Words[0], "-")
	if !isRange {
		to = from
	}
	first, err := strconv.ParseUint(from, 0, 32)
	if err != nil {
		return err
	}
	last, err := strconv.ParseUint(to, 0, 32)
	if err != nil {
		return err
	}
	kind, ok := StateNamed(l.Words[1])
	if !ok {
		return fmt.Errorf("state %q", l.Words[1])
	}
	txn, err := transactionOf(&l)
	if err != nil {
		return err
	}
	o := codec.Outcome{Kind: kind}
	if kind == codec.StateRejected && len(l.Words) > 2 {
		o.Error = &codec.ErrorInfo{Condition: codec.Symbol(l.Words[2])}
	}
	for id := first; id <= last; id++ {
		switch {
		case l.Verb == "settle":
			s.Settle(uint32(id), o)
		case txn != nil:
			s.DisposeIn(txn, uint32(id), o)
		default:
			s.Dispose(uint32(id), o)
		}
	}
	return nil
}

// ask compares a value that the machine tells the shell.
func (p *player) ask(l Line) error {
	s := &p.shell
	link := s.link
	if name := l.take("link", ""); name != "" {
		link = s.links[name]
	}
	if len(l.Words) != 1 {
		return fmt.Errorf("want a name and a value")
	}
	var got string
	switch l.Verb {
	case "credit":
		got = fmt.Sprint(link.Credit())
	case "queued":
		got = fmt.Sprint(link.Queued())
	case "live":
		got = fmt.Sprint(link.Live())
	case "draining":
		got = fmt.Sprint(link.Draining())
	case "sessions":
		got = fmt.Sprint(p.conn.Sessions())
	case "returned":
		got = fmt.Sprint(s.returned)
	case "done":
		got = fmt.Sprint(p.conn.Done())
	case "identity":
		got = p.conn.Identity
	case "next": // when Tick wants to be called
		p.collect()
		p.next = p.conn.Tick(p.now)
		got = "never"
		if !p.next.IsZero() {
			got = p.next.Sub(p.now).Round(time.Millisecond).String()
		}
	default:
		return fmt.Errorf("no value %q", l.Verb)
	}
	if got != unquote(l.Words[0]) {
		return fmt.Errorf("%s is %s", l.Verb, got)
	}
	return nil
}
