package foreign

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// Scenarios runs the program's scenarios against a broker of their own. Each shows as a
// subtest as soon as it is over. The test fails as well when goroutines, descriptors or
// memory remain in the broker.
func (c Client) Scenarios(t *testing.T) {
	t.Helper()
	c.Need(t)
	broker := harness.Start(t, settings(t)...)
	base, err := broker.Gauges()
	if err != nil {
		t.Fatal(err)
	}
	c.scenarios(t, broker, "scenarios")
	broker.Settled(t, base, 64<<20, 10*time.Second)
}

// Restarts runs the scenarios in which the broker is killed and comes back.
func (c Client) Restarts(t *testing.T) {
	t.Helper()
	c.Need(t)
	c.scenarios(t, harness.Start(t, settings(t)...), "restarts")
}

// settings are arguments with which the broker is patient at addresses of patient.#: scenarios may use them.
func settings(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leto.yaml")
	err := os.WriteFile(path, []byte(`address-settings:
  - { match: "patient.#", redelivery-delay: 300ms, redelivery-delay-multiplier: 2, max-delivery-attempts: 3 }
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path}
}

func (c Client) scenarios(t *testing.T, broker *harness.Broker, which string) {
	t.Helper()
	ran := 0
	seen := Seen{}
	err := c.run(t.Context(), broker.URL(), func(line done) string {
		if line.Ask == "restart" {
			if err := broker.Again(); err != nil {
				t.Error(err)
			}
			return "restarted\n"
		}
		ran++
		seen[line.Scenario] = line.Result
		t.Run(line.Scenario, func(t *testing.T) {
			switch line.Result {
			case "pass":
			case "skip":
				t.Skip(line.Text)
			default:
				t.Error(line.Text)
			}
		})
		return ""
	}, which)
	if ran == 0 {
		err = errors.Join(err, errors.New("no scenario ran"))
	}
	if err != nil && !t.Failed() {
		t.Error(err)
	}
	if err := seen.Keep(c.Name + "-" + which); err != nil {
		t.Error(err)
	}
}
