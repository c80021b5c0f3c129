package peers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func ramqp() *peer {
	return &peer{
		name:     "rAMQP",
		accepted: "in memory: its queues are transient unless the address begins with /durable/",
		version:  ramqpVersion,
		lay:      func(string, string, int) error { return nil },
		command: func(home, dir string, port int) *exec.Cmd {
			return exec.Command(filepath.Join(home, "ramqp", "bin", "ramqp-brokerd"),
				"--listen", fmt.Sprintf("127.0.0.1:%d", port), "--data-dir", filepath.Join(dir, "data"))
		},
		queue: func(n int) string { return "/queues/" + plain(n) },
	}
}

func ramqpDurable() *peer {
	p := ramqp()
	p.setting, p.accepted = "/durable/", "committed by redb, which flushes"
	p.queue = func(n int) string { return "/durable/" + plain(n) }
	return p
}

func ramqpVersion(home string) (string, error) {
	// cargo keeps a record of what it installed.
	text, err := os.ReadFile(filepath.Join(home, "ramqp", ".crates.toml"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errAbsent
	}
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), "ramqp-broker ")
	version, _, _ := strings.Cut(rest, " ")
	return version, nil
}
