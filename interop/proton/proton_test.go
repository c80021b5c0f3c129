// Package proton runs scenarios written with Apache Qpid Proton's Python bindings
// against the leto binary. Each scenario shows as a subtest.
package proton

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// limit is far above the time that all scenarios take together.
const limit = 4 * time.Minute

func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	python, err := interpreter()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	broker := harness.Start(t)
	base, err := broker.Gauges()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-B", filepath.Join("suite", "run.py"))
	cmd.Env = append(os.Environ(), "LETO_AMQP_URL="+broker.URL(), "PN_TRACE_FRM=", "MESSAGING_CONNECT_FILE=")
	var errs strings.Builder
	cmd.Stderr = &errs
	lines, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for read := bufio.NewReader(lines); ; {
		text, err := read.ReadString('\n')
		if err != nil {
			break
		}
		var done struct{ Scenario, Result, Text string }
		if err := json.Unmarshal([]byte(text), &done); err != nil {
			t.Errorf("scenarios: unexpected output %q", text)
			continue
		}
		ran++
		t.Run(done.Scenario, func(t *testing.T) {
			switch done.Result {
			case "pass":
			case "skip":
				t.Skip(done.Text)
			default:
				t.Error(done.Text)
			}
		})
	}
	if err := cmd.Wait(); err != nil && !t.Failed() || ctx.Err() != nil || ran == 0 {
		t.Errorf("scenarios: %v after %d of them\n%s", err, ran, errs.String())
	}
	broker.Settled(t, base, 64<<20, 10*time.Second)
}

// interpreter is a Python that can import Proton: the one LETO_PYTHON names, or that
// of .venv at the root of the module, which `make interop` creates.
func interpreter() (string, error) {
	python := os.Getenv("LETO_PYTHON")
	if python == "" {
		root, err := harness.Root()
		if err != nil {
			return "", err
		}
		python = filepath.Join(root, ".venv", "bin", "python")
	}
	if out, err := exec.Command(python, "-c", "import proton, proton.reactor").CombinedOutput(); err != nil {
		return "", fmt.Errorf("python: %s can't import proton (make interop sets it up): %w %s", python, err, out)
	}
	return python, nil
}
