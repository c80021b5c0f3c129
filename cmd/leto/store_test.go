package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreCommands: what a broker has accepted is there after a stop, in an export, and in a store made of it. An
// export of a running broker has what was there at its moment.
func TestStoreCommands(t *testing.T) {
	dir := t.TempDir()
	data, file, again := filepath.Join(dir, "data"), filepath.Join(dir, "export"), filepath.Join(dir, "again")
	online, before := filepath.Join(dir, "online"), filepath.Join(dir, "before")
	p := broker(t, "--data", data)
	url := "amqp://" + p.amqp
	leto(t, "send", "orders", "hello", "--url", url).want(t, exitDone, "")
	leto(t, "send", "orders", "lost", "--durable=false", "--url", url).want(t, exitDone, "")
	leto(t, "store", "check", "--data", data).want(t, exitConflict, "in use by another process")
	leto(t, "store", "export", online, "--online", "--data", data).want(t, exitUsage, "use one of them")
	leto(t, "store", "export", online, "--online", "--admin-url", "http://"+p.http).want(t, exitDone, "")
	leto(t, "send", "orders", "later", "--url", url).want(t, exitDone, "")
	p.stop(t)

	leto(t, "store", "check", "--data", filepath.Join(dir, "none")).want(t, exitNotFound, "holds no store")
	if r := leto(t, "store", "check", "--data", data); r.code != exitDone || !strings.Contains(r.out, "2 messages") {
		t.Errorf("check: %d %q %q", r.code, r.out, r.errOut)
	}
	leto(t, "store", "export", file, "--data", data).want(t, exitDone, "")
	leto(t, "store", "export", file, "--data", data).want(t, exitUsage, "say --yes")
	leto(t, "store", "export", os.DevNull, "--data", data, "--yes").want(t, exitConflict, "is no file")
	leto(t, "store", "export", file, "--data", data, "--yes").want(t, exitDone, "")
	leto(t, "store", "import", file, "--data", data).want(t, exitConflict, "holds a store already")
	leto(t, "store", "import", file, "--data", again).want(t, exitDone, "")
	leto(t, "store", "import", online, "--data", before).want(t, exitDone, "")

	for data, want := range map[string]string{again: "hello\nlater\n", before: "hello\n"} {
		p = broker(t, "--data", data)
		r := leto(t, "receive", "orders", "--count", "9", "--timeout", "1s", "--url", "amqp://"+p.amqp)
		if r.code != exitTimeout || r.out != want {
			t.Errorf("receive: %d %q %q, want %q", r.code, r.out, r.errOut, want)
		}
		p.stop(t)
	}

	segments, err := filepath.Glob(filepath.Join(data, "journal", "0*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments: %v, %v", segments, err)
	}
	if err := os.WriteFile(file, []byte("no export"), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is somebody else's, or left of a store, stays.
	others := filepath.Join(dir, "others", "index", "precious")
	if err := os.MkdirAll(others, 0o700); err != nil {
		t.Fatal(err)
	}
	leto(t, "store", "import", file, "--data", filepath.Join(dir, "others")).want(t, exitConflict, "a part of one, index")
	if _, err := os.Stat(others); err != nil {
		t.Error(err)
	}
	for range 2 { // nothing of the first try is in the way of the second
		leto(t, "store", "import", file, "--data", filepath.Join(dir, "third")).want(t, exitFailed, "export")
	}
}
