package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// patience is how long a read waits for the peer.
const patience = 20 * time.Second

// Conn is a raw client connection. It is for one goroutine.
type Conn struct {
	net.Conn
	r    *bufio.Reader
	next uint32 // delivery id of the session
}

// Dial connects and sends nothing.
func Dial(address string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, r: bufio.NewReaderSize(c, 16<<10)}, nil
}

// Connect dials and goes as far as an open session.
func Connect(address, container string) (*Conn, error) {
	c, err := Dial(address)
	if err != nil {
		return nil, err
	}
	if err := c.Send(HeaderAMQP, Open(container, 1<<16), Begin()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Header(HeaderAMQP); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if _, err := c.Await(CodeBegin); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Send writes all parts in one go.
func (c *Conn) Send(parts ...[]byte) error {
	_, err := c.Write(slices.Concat(parts...))
	return err
}

// Header reads a protocol header and compares it.
func (c *Conn) Header(want []byte) error {
	var got [8]byte
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c.r, got[:]); err != nil {
		return fmt.Errorf("protocol header: %w", err)
	}
	if string(got[:]) != string(want) {
		return fmt.Errorf("protocol header: got %q, want %q", got[:], want)
	}
	return nil
}

// Next reads one frame that is not empty.
func (c *Conn) Next() (Frame, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return Frame{}, err
	}
	for {
		frame, err := ReadFrame(c.r)
		if err != nil || frame.Code != 0 {
			return frame, err
		}
	}
}

// Await reads up to a frame with one of the codes and skips others, but a detach,
// end or close that isn't asked for is an error.
func (c *Conn) Await(codes ...uint64) (Frame, error) {
	for {
		frame, err := c.Next()
		if err != nil {
			return frame, fmt.Errorf("awaiting frame %#x: %w", codes, err)
		}
		if slices.Contains(codes, frame.Code) {
			return frame, nil
		}
		switch frame.Code {
		case CodeDetach:
			return frame, fmt.Errorf("awaiting frame %#x: detached: %s", codes, frame.Condition(2))
		case CodeEnd, CodeClose:
			return frame, fmt.Errorf("awaiting frame %#x: ended with %#x: %s", codes, frame.Code, frame.Condition(0))
		}
	}
}

// Hangup closes the connection in order and waits for the peer's part.
func (c *Conn) Hangup() error {
	defer c.Close()
	if err := c.Send(Close()); err != nil {
		return err
	}
	frame, err := c.Await(CodeClose)
	if err != nil {
		return err
	}
	if condition := frame.Condition(0); condition != "" {
		return errors.New("close: " + condition)
	}
	return nil
}
