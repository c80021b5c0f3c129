// Package harness runs the real leto binary for the interop suites: it builds it,
// starts it on free ports, watches its memory, descriptors and goroutines from
// outside, and stops it the way an init system would.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Binary returns the path of a leto binary built from this tree. It is built once
// per test process; LETO_BINARY names one that is there already, and LETO_RACE=1
// builds with the race detector.
func Binary() (string, error) { return build() }

// built holds the folder of the binary until Run removes it.
var built string

var build = sync.OnceValues(func() (string, error) {
	if ready := os.Getenv("LETO_BINARY"); ready != "" {
		return filepath.Abs(ready)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	if built, err = os.MkdirTemp("", "leto-interop-bin-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "leto")
	args := []string{"build", "-o", path}
	if os.Getenv("LETO_RACE") == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/leto")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("binary: go build ./cmd/leto: %w\n%s", err, out)
	}
	return path, nil
})

// Root returns the folder of the module, found upwards from the working directory.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("module root: no go.mod above %s", start)
		}
	}
}
