// Package goamqpown runs the integration tests that go-amqp keeps for itself against
// the leto binary, from the copy of its source in the module cache.
package goamqpown

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

const module = "github.com/Azure/go-amqp"

// names are the tests in go-amqp's integration_test.go.
var names = []string{
	"TestIntegrationRoundTrip",
	"TestIntegrationRoundTrip_Buffered",
	"TestIntegrationReceiverModeSecond",
	"TestIntegrationSessionHandleMax",
	"TestIntegrationLinkName",
	"TestIntegrationClose",
	"TestMultipleSessionsOpenClose",
	"TestDialWithCancelledContext",
	"TestNewSessionWithCancelledContext",
	"TestConcurrentSessionsOpenClose",
	"TestReceiverModeFirst",
	"TestSenderExactlyOnce",
	"TestReceivingLotsOfSettledMessages",
	"TestNewReceiverWithCancelledContext",
	"TestMultipleSendersSharedSession",
	"TestDrainingLink",
	"TestSenderNullValue",
}

// skips says for each test that may skip itself why it may.
var skips = map[string]string{}

func TestOwnTests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker and builds go-amqp's tests")
	}
	broker := harness.Start(t)
	source := unpack(t)
	listed(t, source)
	outcome, output := run(t, source, broker)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			switch outcome[name] {
			case "pass":
			case "skip":
				if skips[name] == "" {
					t.Errorf("%s skipped itself, and nothing says that it may\n%s", name, output[name])
				}
				t.Skip(skips[name])
			case "":
				t.Errorf("%s didn't run", name)
			default:
				t.Errorf("%s: %s\n%s", name, outcome[name], output[name])
			}
		})
	}
}

// unpack copies go-amqp's source to a folder where its tests can be built: the module
// cache is read-only, and the module has dependencies of its own for testing.
func unpack(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	cached := strings.TrimSpace(string(out))
	if cached == "" {
		t.Fatalf("go list -m %s: not in the module cache; run go mod download", module)
	}
	folder := t.TempDir()
	err = filepath.WalkDir(cached, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(cached, path)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, name)
		if entry.IsDir() {
			if entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return os.MkdirAll(to, 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// listed fails the test when go-amqp has an integration test that names doesn't know.
func listed(t *testing.T, source string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "integration_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(names, found[1]) {
			t.Errorf("%s is in integration_test.go and not in names", found[1])
		}
	}
}

// run runs the listed tests and returns the result and the output of each test,
// counting what subtests print as their test's.
func run(t *testing.T, source string, broker *harness.Broker) (result, output map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-mod=mod", "-timeout=150s",
		"-run", "^("+strings.Join(names, "|")+")$", ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "AMQP_BROKER_ADDR="+broker.URL(), "GOFLAGS=", "GOWORK=off")
	var errs strings.Builder
	cmd.Stderr = &errs
	events, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	result, output, err = read(events)
	ended := cmd.Wait()
	var failed *exec.ExitError
	if err != nil || ended != nil && !errors.As(ended, &failed) || len(result) == 0 {
		t.Fatalf("go test: %v\n%s%s", errors.Join(err, ended), output[""], errs.String())
	}
	return result, output
}

// read reads the events that go test -json prints.
func read(events io.Reader) (result, output map[string]string, err error) {
	result, output = map[string]string{}, map[string]string{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return result, output, fmt.Errorf("event %q: %w", lines.Text(), err)
		}
		name, _, sub := strings.Cut(event.Test, "/")
		switch event.Action {
		case "output":
			output[name] += event.Output
		case "fail", "skip": // of a subtest too
			if result[name] != "fail" {
				result[name] = event.Action
			}
		case "pass":
			if !sub && result[name] == "" {
				result[name] = event.Action
			}
		}
	}
	return result, output, lines.Err()
}
