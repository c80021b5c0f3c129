package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/letomq/leto/interop/harness"
)

// Seen is what came of a run: scenario or pair of clients -> pass, skip or fail. That of the last
// run of everything lies in .clients/seen, for the matrix in interop/README.md.
type Seen map[string]string

// Keep writes it down under a name.
func (s Seen) Keep(name string) error {
	path, err := seenPath(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// Recall reads what was kept under a name; nothing when there was nothing.
func Recall(name string) (Seen, error) {
	path, err := seenPath(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Seen
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func seenPath(name string) (string, error) {
	root, err := harness.Root()
	return filepath.Join(root, ".clients", "seen", name+".json"), err
}

// rows are the scenarios that several clients have, in the order and with the words of the
// matrix. A scenario has a name of its own in some programs.
var rows = []struct {
	title string
	names []string
}{
	{"every primitive type", []string{"every_type", "test_body_value", "properties"}},
	{"every kind of body", []string{"every_body", "test_body_data", "text"}},
	{"10 MiB", []string{"ten_mebibytes", "test_ten_mebibytes"}},
	{"1,000 in order", []string{"thousand_in_order", "test_thousand_in_order"}},
	{"accepted", []string{"accepted", "test_accepted", "auto_acknowledge"}},
	{"rejected, to the DLQ", []string{"rejected", "test_rejected"}},
	{"released", []string{"released", "test_released"}},
	{"modified, failed", []string{"modified_failed", "test_modified_failed"}},
	{"modified, undeliverable here", []string{"modified_undeliverable_here", "test_undeliverable_here"}},
	{"attempts end in the DLQ", []string{"attempts_end_in_dlq", "test_attempts_end_in_dlq"}},
	{"redelivery delay, growing", []string{"redelivery_waits", "test_redelivery_waits"}},
	{"sent for later", []string{"sent_for_later", "test_sent_for_later"}},
	{"expiry", []string{"expired", "test_expired"}},
	{"drain", []string{"drain", "test_drain"}},
	{"credit of one", []string{"credit_of_one", "test_credit_of_one"}},
	{"browsing", []string{"browse", "test_browse"}},
	{"priorities", []string{"priority", "test_priority"}},
	{"queue", []string{"queue", "test_queue_by_default"}},
	{"topic", []string{"topic", "topic_by_capability", "test_topic_by_capability"}},
	{"anonymous relay", []string{"anonymous_relay", "test_anonymous_relay", "anonymous_producer"}},
	{"request and reply, dynamic node", []string{"request_reply", "test_request_response"}},
	{"durable subscription", []string{"durable_subscription"}},
	{"temporary queue and topic of JMS", []string{"temporary_topic"}},
	{"client and duplicates-ok acknowledgement of JMS", []string{"dups_ok_acknowledge"}},
	{"selector refused at once", []string{"selector_is_refused"}},
	{"transaction: commit", []string{"transaction_commits", "test_transaction_commits"}},
	{"transaction: rollback, delivery-count", []string{"transaction_rolls_back", "test_transaction_rolls_back"}},
	{"transaction over several queues", []string{"transaction_over_queues", "test_transaction_over_queues"}},
	{"transaction: acquisition", []string{"transaction_acquires"}},
	{"transaction refused, and rolled back", []string{"transaction_refused_commit", "test_transaction_refused_commit"}},
	{"transaction lost with its connection", []string{"transaction_ends_with_connection", "test_transaction_ends_with_connection", "transaction_rolls_back_with_connection"}},
	{"transaction: rollback waits", []string{"rollback_waits", "test_rollback_waits"}},
	{"reconnect after kill -9, durable messages there", []string{"reconnect_after_restart", "test_reconnect_after_restart"}},
	{"delays over kill -9", []string{"delays_after_restart", "test_delays_after_restart"}},
}

// Scenarios is the matrix of scenarios and clients as a table, of what was seen last.
func Scenarios(clients []Client) (string, error) {
	seen := map[string]Seen{}
	var table strings.Builder
	table.WriteString("| |")
	for _, c := range clients {
		all := Seen{}
		for _, which := range []string{"scenarios", "restarts"} {
			s, err := Recall(c.Name + "-" + which)
			if err != nil {
				return "", err
			}
			for name, result := range s {
				all[name[strings.LastIndex(name, ".")+1:]] = result
			}
		}
		seen[c.Name] = all
		fmt.Fprintf(&table, " %s |", c.Title)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(clients)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s |", row.title)
		for _, c := range clients {
			fmt.Fprintf(&table, " %s |", mark(seen[c.Name], row.names))
		}
		table.WriteString("\n")
	}
	return table.String(), nil
}

func mark(seen Seen, names []string) string {
	for _, name := range names {
		switch seen[name] {
		case "pass":
			return "✓"
		case "fail":
			return "✗"
		}
	}
	return ""
}

// Exchanged is the matrix of writers and readers as a table.
func Exchanged(seen Seen) string {
	var table strings.Builder
	table.WriteString("| writes ↓ reads → |")
	for _, reader := range Clients {
		fmt.Fprintf(&table, " %s |", reader.Title)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(Clients)) + "\n")
	for _, writer := range Clients {
		fmt.Fprintf(&table, "| %s |", writer.Title)
		for _, reader := range Clients {
			fmt.Fprintf(&table, " %s |", seen[writer.Name+" "+reader.Name])
		}
		table.WriteString("\n")
	}
	return table.String()
}

// Peculiar lists what clients are known not to write or read as it is.
func Peculiar() string {
	var list strings.Builder
	for _, c := range Clients {
		whys := map[string]bool{}
		for _, known := range []map[string]string{c.CannotWrite, c.CannotRead, c.Chokes} {
			for _, why := range known {
				whys[why] = true
			}
		}
		if len(whys) > 0 {
			fmt.Fprintf(&list, "* %s: %s.\n", c.Title, strings.Join(slices.Sorted(maps.Keys(whys)), "; "))
		}
	}
	return list.String()
}
