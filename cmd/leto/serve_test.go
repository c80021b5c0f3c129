package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// get reads a path of the broker's HTTP side.
func (p *process) get(t *testing.T, path string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+p.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestServeWithoutConfiguration(t *testing.T) {
	p := broker(t)
	for _, path := range []string{"/livez", "/readyz"} {
		if code, body := p.get(t, path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, body := p.get(t, "/api/v1/queues"); code != http.StatusOK || !json.Valid([]byte(body)) || body[0] != '[' {
		t.Errorf("queues: %d %q", code, body)
	}
	entries, err := os.ReadDir(filepath.Join(p.cmd.Dir, "leto-data"))
	if err != nil || len(entries) == 0 {
		t.Errorf("the store isn't in leto-data: %v, %v", entries, err)
	}
	p.stop(t)
	for _, say := range []string{"amqp://" + p.amqp, "http://" + p.http, "leto-data", "leto send orders 'hello' --url amqp://" + p.amqp} {
		if !strings.Contains(p.text(), say) {
			t.Errorf("start-up doesn't say %q:\n%s", say, p.text())
		}
	}
}

func TestServeStopsOnSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := broker(t)
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := p.wait(); err != nil {
			t.Errorf("%s: %v\n%s", signal, err, p.text())
		}
	}
}

func TestServeSurvivesHangup(t *testing.T) {
	p := broker(t)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(p.text(), "SIGHUP"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("SIGHUP isn't mentioned:\n%s", p.text())
		}
	}
	if code, _ := p.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("readyz after SIGHUP: %d", code)
	}
}

// TestServeListensSoon holds the start-up aim with room for a busy machine: it is 100 ms on a quiet one.
func TestServeListensSoon(t *testing.T) {
	best := time.Hour
	for range 3 {
		begin := time.Now()
		p := broker(t)
		best = min(best, time.Since(begin))
		p.stop(t)
	}
	t.Logf("from exec to listening: %s", best)
	if best > time.Second {
		t.Errorf("from exec to listening: %s", best)
	}
}

func TestServeJSONLog(t *testing.T) {
	p := broker(t, "--log-format", "json")
	p.stop(t)
	if p.text() == "" {
		t.Error("nothing was logged")
	}
	for line := range strings.Lines(p.text()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestServeBusyPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	leto(t, "serve", "--http", "off", "--listen", address).want(t, exitFailed,
		"leto: "+address+" is in use by another process: listen on another with --listen HOST:PORT")
	leto(t, "serve", "--listen", "127.0.0.1:0", "--http", address).want(t, exitFailed,
		"leto: "+address+" is in use by another process: choose another with --http HOST:PORT, or --http off")
}

func TestServeRefusals(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"serve --listen 0.0.0.0:0", "auth: { users-file: users }"},
		{"serve --listen 127.0.0.1", `"127.0.0.1" is not HOST:PORT`},
		{"serve --set amqp.max-frame-size=1", "1 is outside 512 to 16777216 bytes"},
		{"serve --log-level loud", "--log-level: log.level:"},
		{"serve --config /nonexistent/leto.yaml", "configuration file /nonexistent/leto.yaml: no such file"},
		{"serve --set auth.users-file=/nonexistent/users", "users file: open /nonexistent/users"},
		{"serve now", `unexpected argument "now"`},
		{"serve --set ha.group=a", "ha is not supported by this version yet"},
	} {
		leto(t, strings.Fields(c.args)...).want(t, exitUsage, c.want)
	}
}

func TestServeCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{good: "node: { name: a }\n", bad: "node:\n  nmae: a\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := leto(t, "serve", "--check", "-c", good); r.code != exitDone || r.out != "configuration is valid\n" {
		t.Errorf("%+v", r)
	}
	leto(t, "serve", "--check", "-c", bad).want(t, exitUsage, `leto: `+bad+`:2:3: unknown key "nmae" in node; did you mean "name"?`)
}

func TestMetricsParse(t *testing.T) {
	p := broker(t, "--name", "n1")
	code, body := p.get(t, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leto_build_info", "leto_ready", "leto_connections", "leto_queues", "leto_messages_added_total", "go_goroutines", "process_open_fds"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	if ready := families["leto_ready"]; ready != nil && ready.GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Error("leto_ready isn't 1")
	}
}
