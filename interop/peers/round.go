package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// report is what one run of `leto bench` said.
type report struct {
	Sent        uint64   `json:"sent"`
	Received    uint64   `json:"received"`
	Refused     uint64   `json:"refused"`
	Lost        uint64   `json:"lost"`
	Duplicates  uint64   `json:"duplicates"`
	OutOfOrder  uint64   `json:"out_of_order"`
	SendRate    float64  `json:"send_per_second"`
	ReceiveRate float64  `json:"receive_per_second"`
	Confirm     *latency `json:"confirm,omitempty"`
	Delivery    *latency `json:"delivery,omitempty"`
	Late        *latency `json:"late,omitempty"`
	ClientCPU   float64  `json:"client_cpu_us_per_message"`
	Broker      struct {
		CPU            float64 `json:"cpu_us_per_message"`
		User           float64 `json:"user_us_per_message"`
		System         float64 `json:"system_us_per_message"`
		ResidentBefore float64 `json:"resident_before_bytes"`
		ResidentPeak   float64 `json:"resident_peak_bytes"`
	} `json:"broker"`
}

type latency struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

// result is what one broker did in one round of a scenario.
type result struct {
	Scenario string            `json:"scenario"`
	Round    int               `json:"round"`
	Peer     string            `json:"peer"`
	Version  string            `json:"version"`
	At       time.Time         `json:"at"`
	StartMS  float64           `json:"start_ms"`
	Phases   map[string]report `json:"phases"`
	Void     string            `json:"void,omitempty"` // which phases are missing, one a line, and why
	Machine  machine           `json:"machine"`
}

// course measures every broker in one round of a scenario, each round in another order.
// What a broker did is kept at once: a round that is cut short leaves those before.
func (s *scenario) course(home string, round int, t pace, say func(string)) error {
	peers := s.peers()
	m := thisMachine()
	for i := range peers {
		p := peers[(i+round)%len(peers)]
		if s.topic && p.topic == "" {
			continue
		}
		version, err := p.version(home)
		if errors.Is(err, errAbsent) {
			say(p.label() + ": not installed")
			continue
		}
		if err != nil {
			return err
		}
		r := result{Scenario: s.id, Round: round, Peer: p.label(), Version: version, At: time.Now().UTC(), Machine: m, Phases: map[string]report{}}
		if err := s.measure(p, home, t, &r); err != nil {
			r.Void = err.Error()
			say(p.label() + ": void: " + r.Void)
		}
		say(fmt.Sprintf("%s: %v", p.label(), time.Since(r.At).Round(100*time.Millisecond)))
		if err := keep(filepath.Join(home, "results"), r); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) measure(p *peer, home string, t pace, r *result) (err error) {
	b, err := start(p, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	r.StartMS = float64(b.started.Microseconds()) / 1000
	var void []error
	for i := range s.phase {
		one := &s.phase[i]
		rep, err := b.bench(one.arguments(p, s.topic, t), t.limit)
		if err == nil {
			r.Phases[one.name] = *rep
			continue
		}
		void = append(void, fmt.Errorf("%s: %w", one.name, err))
		if rep == nil { // what comes next would only wait for the same broker
			break
		}
	}
	return errors.Join(void...)
}

// bench runs `leto bench` against the broker on the second core. An error: the
// phase is void, because messages were lost, refused, came twice or out of order,
// or because it couldn't be run, and then there is no report.
func (b *broker) bench(args []string, limit time.Duration) (*report, error) {
	binary, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"bench", "--json", "--url", fmt.Sprintf("amqp://127.0.0.1:%d", b.port),
		"--pid", fmt.Sprint(b.cmd.Process.Pid),
	}, args...)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := pinned(exec.CommandContext(ctx, binary, args...), 1)
	var words strings.Builder
	cmd.Stderr = &words
	out, failure := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("not done within %v", limit)
	}
	if failure != nil { // one of many producers says enough
		line, _, _ := strings.Cut(strings.TrimPrefix(words.String(), "leto: bench: "), "\n")
		failure = errors.New(cmp.Or(line, failure.Error()))
	}
	var all []report
	if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 {
		return nil, cmp.Or(failure, errors.New("no report"))
	}
	return &all[0], failure
}

// keep writes a result into a folder, from which tables are made.
func keep(folder string, r result) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	name := strings.NewReplacer(" ", "-", ",", "", "/", "").Replace(fmt.Sprintf("%s_%d_%s.json", r.Scenario, r.Round, r.Peer))
	return write(folder, name, string(text)+"\n")
}

// recall reads all that was kept.
func recall(folder string) ([]result, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var results []result
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, r)
	}
	return results, nil
}
