package peers

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/letomq/leto/interop/harness"
)

func leto() *peer {
	return &peer{
		name:     "leto",
		accepted: "flushed to the device (`store.sync: always`)",
		version:  func(string) (string, error) { return letoVersion() },
		lay:      func(string, string, int) error { return nil },
		command: func(_, dir string, port int) *exec.Cmd {
			binary, _ := harness.Binary() // version has built it
			return exec.Command(binary, "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", port),
				"--http", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
		},
		queue: plain,
		topic: "fan",
	}
}

// letoVersion is what the binary says of itself, or the commit it was built from.
func letoVersion() (string, error) {
	binary, err := harness.Binary()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(binary, "version").Output()
	if err != nil {
		return "", fmt.Errorf("leto version: %w", err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "leto ")
	root, err := harness.Root()
	if err != nil {
		return "", err
	}
	// Between releases the commit says more; a folder without git has none.
	if commit, err := exec.Command("git", "-C", root, "rev-parse", "--short=10", "HEAD").Output(); err == nil {
		version += ", commit " + strings.TrimSpace(string(commit))
	}
	return version, nil
}
