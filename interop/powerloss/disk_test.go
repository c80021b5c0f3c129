//go:build linux

package powerloss

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// shelf is a file system that can clone files. Images lie on it.
type shelf struct {
	dir    string
	images int
}

const shelfSize = 24 << 30 // bytes, most of which are never written

func newShelf(t *testing.T) *shelf {
	t.Helper()
	folder, err := os.MkdirTemp(os.Getenv(folderEnv), "shelf-")
	if err != nil {
		t.Fatal(err)
	}
	image, dir := filepath.Join(folder, "xfs"), filepath.Join(folder, "mounted")
	sparse(t, image, shelfSize)
	run(t, "mkfs.xfs", "-q", "-m", "reflink=1", image)
	mount(t, image, dir)
	t.Cleanup(func() {
		if err := errors.Join(unmount(dir), os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	return &shelf{dir: dir}
}

// disk is an ext4 image, mounted.
type disk struct {
	image, dir string
}

func (s *shelf) name() string {
	s.images++
	return filepath.Join(s.dir, fmt.Sprintf("%04d", s.images))
}

// newDisk makes an empty one.
func (s *shelf) newDisk(t *testing.T, size int64) *disk {
	t.Helper()
	image := s.name()
	sparse(t, image, size)
	run(t, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
	return s.use(t, image)
}

// use mounts an image.
func (s *shelf) use(t *testing.T, image string) *disk {
	t.Helper()
	d := &disk{image, image + ".mounted"}
	mount(t, image, d.dir)
	return d
}

// drop takes the disk away. Nobody may have files open there.
func (d *disk) drop(t *testing.T) {
	t.Helper()
	if err := errors.Join(unmount(d.dir), os.Remove(d.dir), os.Remove(d.image)); err != nil {
		t.Error(err)
	}
}

// clone makes a copy of a file that shares its blocks: all that was written to it by now is in it, and nothing later.
func clone(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	const ficlone = 0x40049409
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dst.Fd(), ficlone, src.Fd()); errno != 0 {
		return fmt.Errorf("clone %s: %w", from, errno)
	}
	return nil
}

func sparse(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.Create(name)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mount(t *testing.T, image, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "mount", "-o", "loop,noatime", image, dir)
}

// unmount waits for what the kernel still has to do there.
func unmount(dir string) (err error) {
	for range 100 {
		if err = syscall.Unmount(dir, 0); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// keep saves an image in which a failure was found.
func keep(t *testing.T, image, as string) {
	dir := os.Getenv(keepEnv)
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
		return
	}
	to := filepath.Join(dir, as)
	run(t, "cp", "--sparse=always", image, to)
	t.Logf("the image is kept as %s", to)
}
