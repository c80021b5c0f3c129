package bench

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/amqp/server/stream"
	"github.com/letomq/leto/codec"
)

// peer is one connection with one session and one link. One goroutine owns it.
type peer struct {
	socket  net.Conn
	machine *amqp.Conn
	link    *amqp.Link
	buf     []byte
	r, w    int
	spare   []byte
	pending []byte // encoded and not written
	pace    *pace  // of a producer with a rate
}

// dial opens a connection and attaches a link to address.
func dial(o *Options, role codec.Role, address string) (*peer, error) {
	host := o.URL.Host
	if o.URL.Port() == "" {
		host = net.JoinHostPort(o.URL.Hostname(), "5672")
	}
	socket, err := net.DialTimeout("tcp", host, 10*time.Second)
	if err != nil {
		return nil, &ConnectError{err}
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	cfg := amqp.Defaults()
	cfg.ContainerID = "leto-bench-" + hex.EncodeToString(id[:])
	cfg.Hostname = o.URL.Hostname()
	cfg.TagPrefix = id
	cfg.Login = &amqp.Login{Mechanism: "ANONYMOUS", Response: []byte("leto")}
	if o.URL.User != nil {
		password, _ := o.URL.User.Password()
		cfg.Login = &amqp.Login{Mechanism: "PLAIN", Response: []byte("\x00" + o.URL.User.Username() + "\x00" + password)}
	}
	p := &peer{socket: stream.Over(socket), machine: amqp.New(cfg, time.Now()), buf: make([]byte, 64<<10)}
	if err := p.open(role, address, o); err != nil {
		socket.Close()
		return nil, err
	}
	return p, nil
}

// ConnectError says that the broker couldn't be reached.
type ConnectError struct{ err error }

func (e *ConnectError) Error() string { return "cannot connect: " + e.err.Error() }
func (e *ConnectError) Unwrap() error { return e.err }

func (p *peer) open(role codec.Role, address string, o *Options) error {
	deadline := time.Now().Add(15 * time.Second)
	var failure error
	done := false
	for !done {
		err := p.step(deadline, func(ev *amqp.Event) {
			switch ev.Kind {
			case amqp.EventOpened:
				p.machine.Begin()
			case amqp.EventBegun:
				t := amqp.Terms{
					Source:        &codec.Source{Address: codec.Some(address)},
					Target:        &codec.Target{Address: codec.Some(address)},
					SndSettleMode: codec.SettleUnsettled,
				}
				if o.Settled {
					t.SndSettleMode = codec.SettleSettled
				}
				if o.Topic {
					t.Source.Capabilities, t.Target.Capabilities = []codec.Symbol{topic}, []codec.Symbol{topic}
				}
				p.link = ev.Session.Attach("bench", role, t)
			case amqp.EventAttached:
				terminus := ev.Attach.Target != nil || ev.Attach.Coordinator != nil
				if role == codec.RoleReceiver {
					terminus = ev.Attach.Source != nil
				}
				done = terminus
			}
		})
		if err != nil {
			failure = err
			break
		}
	}
	return failure
}

// errDeadline says that nothing came in time.
var errDeadline = errors.New("nothing came in time")

// topic is the capability by which a link says that an address is to be a topic.
const topic codec.Symbol = "topic"

// step writes what is to be written, reads once and hands over what happened.
// The zero deadline: it waits as long as it takes.
func (p *peer) step(deadline time.Time, handle func(*amqp.Event)) error {
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.socket.SetReadDeadline(deadline); err != nil {
		return err
	}
	if p.pace.over() {
		return errDeadline
	}
	n, err := p.socket.Read(p.buf[p.w:])
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.machine.Tick(time.Now())
			return errDeadline
		}
		return fmt.Errorf("connection lost: %w", err)
	}
	p.w += n
	return p.take(handle)
}

func (p *peer) take(handle func(*amqp.Event)) error {
	var failure error
	for {
		n, ev := p.machine.Next(time.Now(), p.buf[p.r:p.w])
		p.r += n
		if ev == nil {
			break
		}
		switch ev.Kind {
		case amqp.EventFailed, amqp.EventClosed, amqp.EventEnded, amqp.EventSessionFailed, amqp.EventDetached, amqp.EventLinkFailed:
			failure = &RefusedError{Cause: ev.Err}
		default:
			handle(ev)
		}
	}
	if want := p.machine.Want(p.buf[p.r:p.w]); want > len(p.buf) {
		p.buf = append(make([]byte, 0, want), p.buf[p.r:p.w]...)[:want]
		p.r, p.w = 0, p.w-p.r
	} else {
		p.w = copy(p.buf, p.buf[p.r:p.w])
		p.r = 0
	}
	return failure
}

// RefusedError says that the broker ended the link, the session or the connection.
type RefusedError struct{ Cause *amqp.Error }

func (e *RefusedError) Error() string {
	if e.Cause == nil {
		return "the broker closed the link"
	}
	return "the broker refused: " + e.Cause.Error()
}

// encode ends the frames begun, so that nothing that comes later is joined with them.
func (p *peer) encode() {
	out := p.machine.Output(time.Now(), p.spare)
	p.pending = append(p.pending, out...)
	if out != nil {
		p.spare = out[:0]
	}
}

func (p *peer) flush() error {
	if len(p.pending) > 0 {
		_, err := p.socket.Write(p.pending)
		p.pending = p.pending[:0]
		if err != nil {
			return fmt.Errorf("connection lost: %w", err)
		}
	}
	for {
		out := p.machine.Output(time.Now(), p.spare)
		if len(out) == 0 {
			return nil
		}
		p.spare = out[:0]
		if _, err := p.socket.Write(out); err != nil {
			return fmt.Errorf("connection lost: %w", err)
		}
	}
}

// close ends the connection in good order, or after a second all the same.
func (p *peer) close() {
	deadline := time.Now().Add(time.Second)
	p.machine.Close(nil)
	for !p.machine.Done() {
		if p.step(deadline, func(*amqp.Event) {}) != nil {
			break
		}
	}
	p.socket.Close()
}
