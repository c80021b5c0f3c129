package stream

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// stream is a TCP socket that one goroutine reads and one writes at a time. Anybody may close it and set its deadlines.
type stream struct {
	*net.TCPConn
	in, out direction
}

// direction is what a call of the runtime's poller works on.
type direction struct {
	raw   syscall.RawConn
	try   func(fd uintptr) bool // made once; false: the socket isn't ready
	buf   []byte
	n     int // of buf, done
	errno syscall.Errno
}

// calls counts those of all streams, since the watchdog is the process's. One of watched is told to the scheduler. A
// call and what follows from it take 300 µs at most, so that a goroutine runs undisturbed for 40 ms at most before
// the watchdog is awake, which then gives it 10 ms. All of them are told where the race detector listens: it takes it
// from ordinary calls that what was done before a write is seen after the read.
var (
	calls   atomic.Uint32
	watched = uint32(128)
)

func init() {
	if raceDetector {
		watched = 1
	}
}

// told reports whether the next call is to be an ordinary one.
func told() bool { return calls.Add(1)%watched == 0 }

// Over returns a socket that does what the given one does, with cheaper calls where there are such. At most one goroutine
// may read from it at a time, and at most one may write.
func Over(socket net.Conn) net.Conn {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return socket
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return socket
	}
	s := &stream{TCPConn: tcp, in: direction{raw: raw}, out: direction{raw: raw}}
	s.in.try, s.out.try = s.in.read, s.out.write
	return s
}

// Read is net.Conn's.
func (s *stream) Read(b []byte) (int, error) {
	if len(b) == 0 || told() {
		return s.TCPConn.Read(b)
	}
	d := &s.in
	d.buf, d.n, d.errno = b, 0, 0
	err := d.raw.Read(d.try)
	d.buf = nil
	switch {
	case err != nil:
	case d.errno != 0:
		err = s.failed("read", d.errno)
	case d.n == 0:
		err = io.EOF
	}
	return d.n, err
}

// Write is net.Conn's.
func (s *stream) Write(b []byte) (int, error) {
	if len(b) == 0 || told() {
		return s.TCPConn.Write(b)
	}
	d := &s.out
	d.buf, d.n, d.errno = b, 0, 0
	err := d.raw.Write(d.try)
	d.buf = nil
	if err == nil && d.errno != 0 {
		err = s.failed("write", d.errno)
	}
	return d.n, err
}

func (s *stream) failed(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}

// read is tried until something has come. It is tried even right after a read that left room in its buffer: an end of the
// stream that came together with that data isn't reported once more.
func (d *direction) read(fd uintptr) bool {
	n, errno := call(syscall.SYS_READ, fd, d.buf)
	if errno == syscall.EAGAIN {
		return false
	}
	d.n, d.errno = n, errno
	return true
}

// write is tried until everything is written.
func (d *direction) write(fd uintptr) bool {
	for d.n < len(d.buf) {
		n, errno := call(syscall.SYS_WRITE, fd, d.buf[d.n:])
		if errno == syscall.EAGAIN {
			return false
		}
		if errno != 0 {
			d.errno = errno
			break
		}
		d.n += n
	}
	return true
}

// call reads into b or writes it; b isn't empty, and the socket doesn't block.
func call(number, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
