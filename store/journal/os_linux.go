package journal

import (
	"os"
	"runtime"
	"syscall"
)

// Sync flushes with fdatasync: without the time of the last change, which costs a write of its own.
func (f *osFile) Sync() error {
	for {
		err := syscall.Fdatasync(f.fd)
		if err == syscall.EINTR {
			continue
		}
		runtime.KeepAlive(f)
		return os.NewSyscallError("fdatasync", err)
	}
}

func (f *osFile) Allocate(size int64) error {
	for {
		err := syscall.Fallocate(f.fd, 0, 0, size)
		if err == syscall.EINTR {
			continue
		}
		runtime.KeepAlive(f)
		if err == syscall.EOPNOTSUPP || err == syscall.ENOSYS {
			return f.extend(size)
		}
		return os.NewSyscallError("fallocate", err)
	}
}

func freeBytes(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}
