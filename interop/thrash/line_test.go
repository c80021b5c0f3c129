package thrash

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/letomq/leto/interop/wire"
)

// silence is how long a peer may say nothing.
const silence = 60 * time.Second

// line is a connection with one session and one link, that reads and writes many frames at a time: it takes less of the
// machine than the broker does. Whoever reads is one goroutine, whoever writes another or the same one.
type line struct {
	net.Conn
	r *bufio.Reader

	mu      sync.Mutex
	granted *sync.Cond
	limit   uint32 // deliveries that credit and window allow in all
	settled uint32 // by the broker
	refused int    // of these
	failed  error
}

func connect(address, container string, attach []byte) (*line, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &line{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}
	l.granted = sync.NewCond(&l.mu)
	var hello []byte
	for _, part := range [][]byte{wire.HeaderAMQP, wire.Open(container, 1<<16), wire.Begin(), attach} {
		hello = append(hello, part...)
	}
	if _, err := c.Write(hello); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var header [8]byte
	for range header {
		if _, err := l.r.ReadByte(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for {
		f, err := l.next()
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if f.Code == wire.CodeAttach {
			return l, nil
		}
	}
}

// next reads a frame. That the broker ends something is an error.
func (l *line) next() (wire.Frame, error) {
	if l.r.Buffered() == 0 {
		if err := l.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return wire.Frame{}, err
		}
	}
	f, err := wire.ReadFrame(l.r)
	switch f.Code {
	case wire.CodeDetach:
		err = fmt.Errorf("detached: %s", f.Condition(2))
	case wire.CodeEnd, wire.CodeClose:
		err = fmt.Errorf("ended: %s", f.Condition(0))
	}
	return f, err
}

// inflight is how many messages may be on their way to the broker.
const inflight = 2000

// feed sends n messages and returns when all are accepted.
func feed(broker, address string, n int, message func(i int) []byte) error {
	l, err := connect(broker, "feed", wire.AttachSender(0, "feed", address))
	if err != nil {
		return err
	}
	defer l.Close()
	go l.hear()
	var out []byte
	for i := 0; i < n; {
		l.mu.Lock()
		for l.failed == nil && (int(l.limit) <= i || i-int(l.settled) >= inflight) {
			l.granted.Wait()
		}
		end := min(n, int(l.limit), int(l.settled)+inflight, i+200)
		err := l.failed
		l.mu.Unlock()
		if err != nil {
			return err
		}
		for out = out[:0]; i < end; i++ {
			out = append(out, wire.Transfer(0, uint32(i), false, message(i))...)
		}
		if _, err := l.Write(out); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.failed == nil && int(l.settled) < n {
		l.granted.Wait()
	}
	if l.failed == nil && l.refused > 0 {
		return fmt.Errorf("%d messages were refused", l.refused)
	}
	return l.failed
}

// hear takes in what the broker says to a sender.
func (l *line) hear() {
	window, credit := uint32(0), uint32(0)
	for {
		f, err := l.next()
		l.mu.Lock()
		switch {
		case err != nil:
			l.failed = err
		case f.Code == wire.CodeFlow:
			window = uint32(f.Number(0) + f.Number(1))
			if f.Field(4) != nil {
				credit = uint32(f.Number(5) + f.Number(6))
			}
			l.limit = min(window, credit)
		case f.Code == wire.CodeDisposition:
			first, last := f.Number(1), f.Number(1)
			if f.Field(2) != nil {
				last = f.Number(2)
			}
			l.settled += uint32(last - first + 1)
			if outcome, _ := f.Outcome(); outcome != wire.CodeAccepted {
				l.refused += int(last - first + 1)
			}
		}
		l.granted.Broadcast()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// eat takes what comes from a queue, and writes what decide appends for each message: the frames that settle it. It returns
// when decide says that there is enough, or when nothing has come for a while.
func eat(broker, name, address string, credit uint32, decide func(out []byte, delivery uint32, message []byte) (_ []byte, enough bool)) error {
	l, err := connect(broker, name, wire.AttachReceiver(0, name, address))
	if err != nil {
		return err
	}
	defer l.Close()
	out := wire.Flow(0, 0, credit)
	came, granted := uint32(0), uint32(0)
	for enough := false; ; {
		if l.r.Buffered() == 0 || enough || len(out) > 32<<10 {
			if came-granted > credit/4 {
				granted = came
				out = append(out, wire.Flow(0, came, credit)...)
			}
			if _, err := l.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		if enough {
			return l.hangUp()
		}
		f, err := l.next()
		if err != nil {
			return err
		}
		if f.Code == wire.CodeTransfer {
			came++
			out, enough = decide(out, uint32(f.Number(1)), f.Payload)
		}
	}
}

// hangUp closes in order, so that what was written before holds.
func (l *line) hangUp() error {
	if _, err := l.Write(wire.Close()); err != nil {
		return err
	}
	for {
		f, err := wire.ReadFrame(l.r)
		if err != nil || f.Code == wire.CodeClose {
			return err
		}
	}
}
