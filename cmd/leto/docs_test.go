package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is a page of the documentation.
type page string

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return page(text)
}

// blocks returns the blocks of code in a language, in order.
func (p page) blocks(language string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllStringSubmatch(string(p), -1) {
		all = append(all, m[1])
	}
	return all
}

// host stands for a machine with systemd: commands that need one, or root, are played by scripts in front of PATH, and
// folders of the system are below one of the test's.
type host struct {
	root  string
	ports *strings.Replacer
}

// systemctl starts the broker of the unit's file as the unit says, and ends it.
const systemctl = `#!/bin/bash
set -eu
start() {
	(cd ROOT && NOTIFY_SOCKET= exec $(sed -n 's/^ExecStart=//p' /etc/systemd/system/leto.service) 2>>ROOT/log >/dev/null </dev/null) & echo $! >ROOT/pid
	for i in $(seq 200); do
		curl -fs http://127.0.0.1:8161/readyz >/dev/null && return
		sleep 0.05
	done
	cat ROOT/log
	exit 1
}
stop() { kill -$1 $(cat ROOT/pid); while kill -0 $(cat ROOT/pid) 2>/dev/null; do sleep 0.02; done; }
case "$*" in
"daemon-reload") ;;
"enable --now leto" | "start leto") start ;;
"stop leto") stop TERM ;;
"restart leto") if kill -0 $(cat ROOT/pid) 2>/dev/null; then stop TERM; fi; start ;;
"reload leto") kill -HUP $(cat ROOT/pid) ;;
"kill --signal=SIGKILL leto") stop KILL ;;
*) echo "systemctl $*?" >&2; exit 1 ;;
esac
`

func newHost(t *testing.T) host {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"bin", "etc/systemd/system", "var/lib", "var/backups", "usr/local/bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary, filepath.Join(root, "usr/local/bin/leto")); err != nil {
		t.Fatal(err)
	}
	h := host{root, strings.NewReplacer(
		"/etc/leto", root+"/etc/leto", "/etc/systemd", root+"/etc/systemd", "/usr/local/bin", root+"/usr/local/bin", "/var/", root+"/var/", "ROOT", root,
		"127.0.0.1:5672", freePort(t), "127.0.0.1:8161", freePort(t),
	)}
	for name, script := range map[string]string{
		"systemctl": systemctl, "useradd": "#!/bin/sh\n", "chown": "#!/bin/sh\n", "journalctl": "#!/bin/sh\ncat ROOT/log\n",
		"htpasswd": "#!/bin/sh\necho \"$2\":'" + hash(t, "secret") + "'\n", // -nbB NAME PASSWORD
	} {
		h.put(t, "bin/"+name, script, 0o755)
	}
	return h
}

// freePort returns HOST:PORT that nobody listens on, outside the range that the system gives to connections.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", 20000+rand.IntN(12000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (h host) put(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, name), []byte(h.ports.Replace(text)), mode); err != nil {
		t.Fatal(err)
	}
}

// run runs commands, each of which has to end well.
func (h host) run(t *testing.T, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // the test's own has ended when it cleans up
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", h.ports.Replace(commands))
	cmd.Dir = h.root
	cmd.Env = append(os.Environ(), "PATH="+h.root+"/bin:"+h.root+"/usr/local/bin:"+os.Getenv("PATH"),
		h.ports.Replace("LETO_URL=amqp://ann:secret@127.0.0.1:5672"), h.ports.Replace("LETO_ADMIN_URL=http://ann:secret@127.0.0.1:8161"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(h.root, "log"))
		t.Fatalf("%s\n%v\n%s\nlog:\n%s", commands, err, out, log)
	}
	return string(out)
}

// TestOperatingPage runs what docs/operating.md says, from installing to sizing.
func TestOperatingPage(t *testing.T) {
	p := readPage(t, "operating.md")
	h := newHost(t)
	commands, yaml := p.blocks("sh"), p.blocks("yaml")
	if len(commands) < 15 || len(yaml) != 2 {
		t.Fatalf("%d blocks of commands, %d of YAML", len(commands), len(yaml))
	}
	h.run(t, commands[0])
	// A test has neither 4 GiB to keep free nor such messages.
	h.put(t, "etc/leto/leto.yaml", strings.ReplaceAll(yaml[0], "disk-free: 4GiB", "disk-free: 192MiB"), 0o600)
	h.put(t, "etc/systemd/system/leto.service", p.blocks("ini")[0], 0o600)
	t.Cleanup(func() { h.run(t, "systemctl stop leto") })
	for i, block := range commands[1:] {
		h.run(t, block)
		if i == 1 { // it runs: have something in its queues
			h.run(t, "leto send orders hello --count 200\nleto receive orders --count 5 --ack reject")
		}
	}
}

// TestMetricsOfOperatingPage: each that the page names is served.
func TestMetricsOfOperatingPage(t *testing.T) {
	_, served := broker(t).get(t, "/metrics")
	named := regexp.MustCompile(`leto_[a-z_]+`).FindAllString(string(readPage(t, "operating.md")), -1)
	if len(named) < 20 {
		t.Errorf("the page names %q", named)
	}
	for _, name := range named {
		if !strings.Contains(served, "# HELP "+name+" ") {
			t.Errorf("%s isn't served", name)
		}
	}
}

// TestLogLinesOfOperatingPage: each that the page names is one that the broker writes.
func TestLogLinesOfOperatingPage(t *testing.T) {
	_, section, _ := strings.Cut(string(readPage(t, "operating.md")), "\n## Log lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var code strings.Builder
	for _, pattern := range []string{"*.go", "../../store/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				code.Write(text)
			}
		}
	}
	lines := 0
	for row := range strings.Lines(section) {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+ [^`]+)`").FindAllStringSubmatch(row, -1) {
			lines++
			if !strings.Contains(code.String(), m[1]) {
				t.Errorf("nobody logs %q", m[1])
			}
		}
	}
	if lines < 10 {
		t.Errorf("%d lines", lines)
	}
}

// TestLinksOfPages: what a page of the documentation refers to is there.
func TestLinksOfPages(t *testing.T) {
	for _, name := range []string{"operating.md", "configuration.md", "limits.md"} {
		for _, m := range regexp.MustCompile(`\]\(([a-zA-Z]*\.md)?(?:#([a-z-]+))?\)`).FindAllStringSubmatch(string(readPage(t, name)), -1) {
			to := m[1]
			if to == "" {
				to = name
			}
			found := m[2] == ""
			for line := range strings.Lines(string(readPage(t, to))) {
				title := strings.TrimLeft(strings.TrimSpace(line), "#")
				found = found || strings.HasPrefix(line, "#") && strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-") == m[2]
			}
			if !found {
				t.Errorf("%s: %s leads nowhere", name, m[0])
			}
		}
	}
}
