package foreign

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/letomq/leto/interop/harness"
	"github.com/letomq/leto/interop/wire"
)

// Written is a message that a client has sent.
type Written struct {
	Name    string
	Encoded []byte // as it left the client
}

// Read is a message that a client has received.
type Read struct {
	Raw   []byte // as it arrived; nil where the client doesn't show it
	Again []byte // what the client makes of the message it holds; nil where it can't
	Lost  string // why the client couldn't read it; "" when it could
}

// Write has the client send the specimens to an address, and returns those it could send,
// with the bytes that passed, and why it couldn't send others.
func (c Client) Write(ctx context.Context, broker *harness.Broker, address string) ([]Written, map[string]string, error) {
	folder, err := os.MkdirTemp("", "leto-specimens-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	shelf := filepath.Join(folder, "specimens.json")
	if err := shelve(shelf, Specimens()); err != nil {
		return nil, nil, err
	}
	tap, err := listen(broker.AMQP)
	if err != nil {
		return nil, nil, err
	}
	defer tap.close()
	c.environ = append(append([]string{}, c.environ...), "LETO_SPECIMENS="+shelf)
	var names []string
	skipped := map[string]string{}
	if err := c.run(ctx, tap.url(), func(line done) string {
		if line.Skip != "" {
			skipped[line.Message] = line.Skip
		} else {
			names = append(names, line.Message)
		}
		return ""
	}, "write", address); err != nil {
		return nil, nil, err
	}
	messages, err := tap.sent()
	if err != nil {
		return nil, nil, err
	}
	if len(messages) != len(names) {
		return nil, nil, fmt.Errorf("%s: said it sent %d messages, %d passed", c.Name, len(names), len(messages))
	}
	var written []Written
	for i, name := range names {
		written = append(written, Written{name, messages[i]})
	}
	return written, skipped, nil
}

// Read has the client take count messages from an address.
func (c Client) Read(ctx context.Context, broker *harness.Broker, address string, count int) ([]Read, error) {
	var all []Read
	var odd error
	err := c.run(ctx, broker.URL(), func(line done) string {
		raw, err := hex.DecodeString(line.Raw)
		again, err2 := hex.DecodeString(line.Again)
		odd = errors.Join(odd, err, err2)
		all = append(all, Read{raw, again, line.Lost})
		return ""
	}, "read", address, fmt.Sprint(count))
	if err = errors.Join(err, odd); err != nil || len(all) != count {
		return nil, fmt.Errorf("%s: %d messages read of %d: %w", c.Name, len(all), count, err)
	}
	return all, nil
}

// Check compares what a client read with the bytes that were sent. Where the client is known
// to misread a message, only bytes that it shows count.
func (r Read) Check(sent []byte, misread bool) error {
	if misread && len(r.Raw) == 0 {
		return nil
	}
	if r.Lost != "" && !misread {
		return errors.New(r.Lost)
	}
	if len(r.Raw) == 0 && len(r.Again) == 0 {
		return errors.New("nothing was read")
	}
	if len(r.Raw) > 0 {
		if err := wire.Intact(sent, r.Raw); err != nil {
			return err
		}
	}
	if len(r.Again) > 0 && !misread {
		return Same(sent, r.Again, true)
	}
	return nil
}

// Same compares the meaning of two messages: their sections, however they are encoded.
// Of the header only durable and priority count, the rest is the broker's. Loosely it is what
// a client holds: no client can tell an absent durable from false, and Qpid JMS notes on each
// message what kind it is to JMS.
func Same(want, got []byte, loosely bool) error {
	one, err := meaning(want)
	if err != nil {
		return err
	}
	two, err := meaning(got)
	if err != nil {
		return err
	}
	if loosely {
		one, two = loosen(one), loosen(two)
	}
	if one != two {
		return fmt.Errorf("messages differ:\n%s\n---\n%s", shorten(one), shorten(two))
	}
	return nil
}

var notedByJMS = regexp.MustCompile(`(, )?symbol "x-opt-jms-[a-z-]+": byte [0-9]+`)

func loosen(meaning string) string {
	meaning = notedByJMS.ReplaceAllString(strings.Replace(meaning, "durable absent", "durable false", 1), "")
	return strings.Replace(meaning, "0x72 map []\n", "", 1)
}

func shorten(text string) string {
	if len(text) > 300 {
		return text[:300] + " …"
	}
	return text
}

// meaning is a message as text, a line for each section that says something.
func meaning(message []byte) (string, error) {
	lines := []string{"durable absent, priority 4"}
	for rest := message; len(rest) > 0; {
		section, after, err := wire.Next(rest)
		if err != nil {
			return "", err
		}
		rest = after
		code, value, err := wire.Code(section)
		if err != nil {
			return "", err
		}
		switch code {
		case wire.SectionDeliveryAnnotations:
			continue
		case wire.SectionHeader:
			if lines[0], err = header(value); err != nil {
				return "", err
			}
			continue
		}
		text, err := wire.Describe(value)
		if err != nil {
			return "", err
		}
		if code == wire.SectionProperties {
			for strings.HasSuffix(text, ", null]") {
				text = strings.TrimSuffix(text, ", null]") + "]"
			}
			if text == "list [null]" {
				text = "list []"
			}
		}
		if (text == "map []" && code != wire.SectionValue) || (text == "list []" && code == wire.SectionProperties) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%#x %s", code, text))
	}
	return strings.Join(lines, "\n"), nil
}

func header(list []byte) (string, error) {
	fields, err := wire.Items(list)
	if err != nil {
		return "", err
	}
	said := []string{"null", "ubyte 4"}
	for i := range min(len(fields), len(said)) {
		text, err := wire.Describe(fields[i])
		if err != nil {
			return "", err
		}
		if text != "null" {
			said[i] = text
		}
	}
	durable := map[string]string{"null": "absent", "true": "true", "false": "false"}[said[0]]
	return fmt.Sprintf("durable %s, priority %s", durable, strings.TrimPrefix(said[1], "ubyte ")), nil
}

// wiretap stands between a client and the broker and remembers what the client sends.
type wiretap struct {
	net.Listener
	broker string
	mu     sync.Mutex
	taps   []*wire.Tap
	open   sync.WaitGroup
}

func listen(broker string) (*wiretap, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wiretap{Listener: l, broker: broker}
	w.open.Add(1)
	go w.accept()
	return w, nil
}

func (w *wiretap) url() string { return "amqp://" + w.Addr().String() }

func (w *wiretap) close() {
	w.Listener.Close()
	w.open.Wait()
}

func (w *wiretap) accept() {
	defer w.open.Done()
	for {
		client, err := w.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", w.broker)
		if err != nil {
			client.Close()
			continue
		}
		tap := &wire.Tap{Conn: client}
		w.mu.Lock()
		w.taps = append(w.taps, tap)
		w.mu.Unlock()
		w.open.Add(2)
		go w.pass(there, tap)
		go w.pass(tap, there)
	}
}

func (w *wiretap) pass(to, from net.Conn) {
	defer w.open.Done()
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// sent are the messages of all connections, those of the first connection first.
func (w *wiretap) sent() ([][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all [][]byte
	for _, tap := range w.taps {
		messages, err := tap.Arrived()
		if err != nil {
			return nil, err
		}
		all = append(all, messages...)
	}
	return all, nil
}
