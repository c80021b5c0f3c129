package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreCommands: what a broker has accepted is there after a stop, in an export, and in a store made of it.
func TestStoreCommands(t *testing.T) {
	dir := t.TempDir()
	data, file, again := filepath.Join(dir, "data"), filepath.Join(dir, "export"), filepath.Join(dir, "again")
	p := broker(t, "--data", data)
	url := "amqp://" + p.amqp
	leto(t, "send", "orders", "hello", "--url", url).want(t, exitDone, "")
	leto(t, "send", "orders", "lost", "--durable=false", "--url", url).want(t, exitDone, "")
	leto(t, "store", "check", "--data", data).want(t, exitConflict, "in use by another process")
	p.stop(t)

	leto(t, "store", "check", "--data", filepath.Join(dir, "none")).want(t, exitNotFound, "holds no store")
	if r := leto(t, "store", "check", "--data", data); r.code != exitDone || !strings.Contains(r.out, "1 messages") {
		t.Errorf("check: %d %q %q", r.code, r.out, r.errOut)
	}
	leto(t, "store", "export", file, "--data", data).want(t, exitDone, "")
	leto(t, "store", "import", file, "--data", data).want(t, exitConflict, "holds a store already")
	leto(t, "store", "import", file, "--data", again).want(t, exitDone, "")

	p = broker(t, "--data", again)
	if r := leto(t, "receive", "orders", "--url", "amqp://"+p.amqp); r.code != exitDone || r.out != "hello\n" {
		t.Errorf("receive: %d %q %q", r.code, r.out, r.errOut)
	}
	leto(t, "receive", "orders", "--timeout", "300ms", "--url", "amqp://"+p.amqp).want(t, exitTimeout, "")
	p.stop(t)

	segments, err := filepath.Glob(filepath.Join(data, "journal", "0*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments: %v, %v", segments, err)
	}
	if err := os.WriteFile(file, []byte("no export"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nothing of the first try is in the way of the second
		leto(t, "store", "import", file, "--data", filepath.Join(dir, "third")).want(t, exitFailed, "export")
	}
}
