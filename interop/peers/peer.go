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

// errAbsent says that a broker isn't installed here.
var errAbsent = errors.New("not installed")

// peer is a broker in one of its settings.
type peer struct {
	name string // of the broker, as tables show it
	// setting is "" where a broker's defaults are meant, else what differs from them.
	setting string
	// accepted is what it means for a durable message.
	accepted string
	// version reads what is installed below home; errAbsent: nothing is.
	version func(home string) (string, error)
	// lay writes configuration and an empty store into dir.
	lay func(home, dir string, port int) error
	// command runs the broker in the foreground with the data and the port that lay was given.
	command func(home, dir string, port int) *exec.Cmd
	// queue and topic are the addresses that bench sends to and receives from; n is the
	// queue's number, and without a topic there is no fan-out.
	queue func(n int) string
	topic string
}

// label is what tables call it.
func (p *peer) label() string {
	if p.setting == "" {
		return p.name
	}
	return p.name + ", " + p.setting
}

// plain is the address of queue n of a broker that takes any name.
func plain(n int) string { return fmt.Sprintf("bench.%d", n) }

// queues is how many of them are declared where a broker doesn't make them itself.
const queues = 4

// jar returns the version in the name of the only file PREFIX-VERSION.jar of a folder.
func jar(folder, prefix string) (string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errAbsent
	}
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		version, ok := strings.CutPrefix(e.Name(), prefix+"-")
		if ok && version != "" && version[0] >= '0' && version[0] <= '9' {
			return strings.TrimSuffix(version, ".jar"), nil
		}
	}
	return "", errAbsent
}

// write puts text into a file of dir, making folders as needed.
func write(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// all are the brokers in every setting, leto first.
func all() []*peer {
	return []*peer{leto(), artemis(), brokerJ(), ramqp(), ramqpDurable(), rabbit(), rabbitQuorum()}
}

// byDefaults are the brokers as they come.
func byDefaults() []*peer {
	var some []*peer
	for _, p := range all() {
		if p.setting == "" {
			some = append(some, p)
		}
	}
	return some
}
