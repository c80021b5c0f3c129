//go:build linux

package powerloss

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/letomq/leto/interop/harness"
)

const (
	roundsEnv = "LETO_POWERLOSS_ROUNDS"
	seedEnv   = "LETO_POWERLOSS_SEED"
	keepEnv   = "LETO_POWERLOSS_KEEP"
	folderEnv = "LETO_POWERLOSS_FOLDER" // set for the process inside the namespace: where everything goes
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(writerEnv) != "":
		os.Exit(write(os.Getenv(writerEnv)))
	case rounds() == 0 || os.Geteuid() != 0 || os.Getenv(folderEnv) != "":
		code := m.Run()
		harness.Tidy()
		os.Exit(code)
	}
	os.Exit(insideNamespace())
}

// insideNamespace runs the tests in a process that has its mounts for itself.
func insideNamespace() int {
	folder, err := os.MkdirTemp("", "leto-powerloss-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	runtime.LockOSThread() // Pdeathsig is about the thread
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), folderEnv+"="+folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func rounds() int {
	n, _ := strconv.Atoi(os.Getenv(roundsEnv))
	return n
}

func seed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	return n
}

// needed skips the test unless it was asked for and can be done. It returns how often the power is to fail.
func needed(t *testing.T) int {
	t.Helper()
	n := rounds()
	if n == 0 {
		t.Skipf("%s isn't set: it says how often the power is to fail", roundsEnv)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount file systems")
	}
	return n
}
