package bench

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timer is a descriptor that can be read once per tick.
type timer struct {
	file *os.File
	buf  [8]byte
}

// newTicker ticks for the first time after first, which must be positive.
func newTicker(first, interval time.Duration) (ticker, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	spec := unix.ItimerSpec{Interval: unix.NsecToTimespec(int64(interval)), Value: unix.NsecToTimespec(int64(first))}
	if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("timer: %w", err)
	}
	return &timer{file: os.NewFile(uintptr(fd), "timer")}, nil
}

func (t *timer) wait() error {
	_, err := t.file.Read(t.buf[:])
	return err
}

func (t *timer) close() { t.file.Close() }
