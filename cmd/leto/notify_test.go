package main

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManagerIsTold: ready once clients are taken, not before; reloading with what came of it; stopping.
func TestServiceManagerIsTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	told := func(want ...string) {
		t.Helper()
		for _, want := range want {
			state := make([]byte, 1000)
			n, err := socket.Read(state)
			if err != nil || !strings.HasPrefix(string(state[:n]), want) {
				t.Fatalf("%q, %v, want %q", state[:n], err, want)
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", name)
	file := newConfiguration(t, "{}\n")
	p := broker(t, "--config", string(file))
	told("READY=1")
	p.signal(t, syscall.SIGHUP)
	told("RELOADING=1", "READY=1\nSTATUS=configuration reloaded")
	file.set(t, "nonsense: 1\n")
	p.signal(t, syscall.SIGHUP)
	told("RELOADING=1", "READY=1\nSTATUS=the last reload failed")
	p.stop(t)
	told("STOPPING=1")
}
