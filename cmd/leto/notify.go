package main

import (
	"net"
	"os"
)

// notify tells systemd what state the process is in, where it asks for that with Type=notify (sd_notify(3)). Nobody else
// gets anything, and who doesn't listen isn't waited for.
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.Dial("unixgram", name)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state)) // a datagram: whole or not at all
}
