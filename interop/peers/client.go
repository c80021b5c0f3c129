package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The load program is held against another client, on leto, so that nobody takes
// its limits for a broker's.

const (
	clientScenario = "clients"
	ownClient      = "leto bench"
	protonClient   = "Proton C++"
)

var clientTable = []column{
	{"msg/s", count, of("full", received)},
	{"client µs/msg", micro, of("full", clientCPU)},
}

// clientRound measures both clients at one leto: producer and consumer on the second
// core, n messages of 256 B, unsettled.
func clientRound(home string, round, n int, limit time.Duration) error {
	p := leto()
	version, err := p.version(home)
	if err != nil {
		return err
	}
	b, err := start(p, home)
	if err != nil {
		return err
	}
	own, err := b.bench([]string{"--address", "own", "--count", strconv.Itoa(n)}, limit)
	if err == nil {
		err = keepClient(home, round, version, ownClient, *own)
	}
	other, failure := b.proton(home, n, limit)
	switch {
	case errors.Is(failure, errAbsent):
		failure = nil
	case failure == nil:
		failure = keepClient(home, round, version, protonClient, *other)
	}
	return errors.Join(err, failure, b.stop())
}

func keepClient(home string, round int, version, client string, rep report) error {
	return keep(filepath.Join(home, "results"), result{
		Scenario: clientScenario, Round: round, Peer: client, Version: version,
		At: time.Now().UTC(), Machine: thisMachine(), Phases: map[string]report{"full": rep},
	})
}

// proton sends and receives with two processes of another client.
func (b *broker) proton(home string, n int, limit time.Duration) (*report, error) {
	program := filepath.Join(home, "proton", "load")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil, errAbsent
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var ends [2]struct {
		Messages int     `json:"messages"`
		Seconds  float64 `json:"seconds"`
		CPU      float64 `json:"cpu_us"`
		err      error
	}
	var both sync.WaitGroup
	for i, mode := range []string{"receive", "send"} {
		both.Go(func() {
			cmd := pinned(exec.CommandContext(ctx, program, mode, fmt.Sprintf("127.0.0.1:%d", b.port), "other", strconv.Itoa(n), "256"), 1)
			var words strings.Builder
			cmd.Stderr = &words
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &ends[i])
			}
			if err != nil {
				ends[i].err = fmt.Errorf("proton %s: %w: %s", mode, err, words.String())
			}
		})
	}
	both.Wait()
	if err := errors.Join(ends[0].err, ends[1].err); err != nil {
		return nil, err
	}
	return &report{
		Sent: uint64(n), Received: uint64(ends[0].Messages),
		ReceiveRate: float64(n) / ends[0].Seconds, ClientCPU: (ends[0].CPU + ends[1].CPU) / float64(n),
	}, nil
}
