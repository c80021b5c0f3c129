package stream_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/letomq/leto/amqp/server/stream"
)

// pair returns a stream and the ordinary socket at its other end.
func pair(t *testing.T) (net.Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := stream.Over(socket)
	t.Cleanup(func() { s.Close(); peer.Close() })
	return s, peer.(*net.TCPConn)
}

func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// What is written in pieces of every size comes whole and in order, both ways at once, and so does its end. The buffers of
// the sockets hold a part of it only.
func TestEverythingComes(t *testing.T) {
	s, peer := pair(t)
	const n = 8 << 20
	all := content(n)
	write := func(w io.Writer, seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 0))
		for rest := all; len(rest) > 0; {
			piece := min(len(rest), 1+r.IntN(1<<r.IntN(20)))
			if m, err := w.Write(rest[:piece]); err != nil || m != piece {
				return errors.Join(err, errors.New("short write"))
			}
			rest = rest[piece:]
		}
		return w.(interface{ CloseWrite() error }).CloseWrite()
	}
	read := func(r io.Reader) error {
		got, err := io.ReadAll(struct{ io.Reader }{r})
		if err == nil && !bytes.Equal(got, all) {
			err = errors.New("other bytes")
		}
		return err
	}
	done := make(chan error, 4)
	go func() { done <- write(s, 1) }()
	go func() { done <- write(peer, 2) }()
	go func() { done <- read(s) }()
	go func() { done <- read(peer) }()
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The end of a stream that comes together with data is seen, whether the data filled the buffer or not.
func TestEndComesWithData(t *testing.T) {
	for range 200 {
		s, peer := pair(t)
		if _, err := peer.Write([]byte("last words")); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
		got, err := io.ReadAll(struct{ io.Reader }{s})
		if err != nil || string(got) != "last words" {
			t.Fatalf("read %q, %v", got, err)
		}
		s.Close()
	}
}

// A read ends at its deadline, and the next one goes on.
func TestReadDeadline(t *testing.T) {
	s, peer := pair(t)
	b := make([]byte, 10)
	for range 300 { // ordinary calls are among them
		_ = s.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
		n, err := s.Read(b)
		var failure net.Error
		if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &failure) || !failure.Timeout() {
			t.Fatalf("read %d, %v", n, err)
		}
	}
	waiting := make(chan error, 1)
	_ = s.SetReadDeadline(time.Time{})
	go func() {
		_, err := s.Read(b)
		waiting <- err
	}()
	_ = s.SetReadDeadline(time.Unix(1, 0))
	if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a read that waits ends with %v", err)
	}
	_ = s.SetReadDeadline(time.Time{})
	_, _ = peer.Write([]byte("abc"))
	if n, err := io.ReadFull(s, b[:3]); err != nil || string(b[:n]) != "abc" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
}

// A write that its peer doesn't read ends at its deadline, and says exactly how much was taken.
func TestWriteDeadline(t *testing.T) {
	s, peer := pair(t)
	all := content(32 << 20)
	_ = s.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := s.Write(all)
	if n == 0 || n == len(all) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	done := make(chan error, 1)
	go func() {
		m, err := s.Write(all[n:])
		if m != len(all)-n {
			err = errors.Join(err, errors.New("short write"))
		}
		s.Close()
		done <- err
	}()
	got, err := io.ReadAll(peer)
	if err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Calls that wait end when the socket is closed, and so do later ones.
func TestClose(t *testing.T) {
	for range 50 {
		s, _ := pair(t)
		failures := make(chan error, 2)
		started := make(chan struct{}, 2)
		go func() {
			started <- struct{}{}
			_, err := s.Read(make([]byte, 1))
			failures <- err
		}()
		go func() {
			started <- struct{}{}
			for b := make([]byte, 1<<20); ; {
				if _, err := s.Write(b); err != nil {
					failures <- err
					return
				}
			}
		}()
		<-started
		<-started
		s.Close()
		for range 2 {
			if err := <-failures; !errors.Is(err, net.ErrClosed) {
				t.Fatalf("ended with %v", err)
			}
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("a later read ends with %v", err)
		}
	}
}

// What the other side does wrong is told as an ordinary socket tells it.
func TestReset(t *testing.T) {
	s, peer := pair(t)
	_ = peer.SetLinger(0)
	peer.Close()
	_, err := s.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) {
		t.Errorf("read ends with %v", err)
	}
	if _, err := s.Write([]byte("a")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write ends with %v", err)
	}
}

// Nothing else is changed: what isn't a TCP socket, and empty calls.
func TestOthers(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if stream.Over(a) != a {
		t.Error("a pipe was wrapped")
	}
	s, _ := pair(t)
	if n, err := s.Read(nil); n != 0 || err != nil {
		t.Errorf("empty read: %d, %v", n, err)
	}
	if n, err := s.Write(nil); n != 0 || err != nil {
		t.Errorf("empty write: %d, %v", n, err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	s, peer := pair(t)
	message, b := content(300), make([]byte, 1000)
	each := testing.AllocsPerRun(1000, func() {
		if _, err := s.Write(message); err != nil {
			t.Fatal(err)
		}
		n, err := io.ReadFull(peer, b[:len(message)])
		if err != nil || !slices.Equal(b[:n], message) {
			t.Fatal(n, err)
		}
		if _, err := peer.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, b[:len(message)]); err != nil {
			t.Fatal(err)
		}
	})
	if each >= 1 {
		t.Errorf("%v allocations in each round trip", each)
	}
}
