// Package foreign runs programs that were written with other people's AMQP clients, in
// whatever language, against the leto binary. A program is started as
//
//	PROGRAM scenarios [NAME…]   runs its scenarios, or those with these names
//	PROGRAM restarts [NAME…]    runs those in which it asks for the broker to be restarted
//	PROGRAM write ADDRESS       sends the specimens as well as its client can
//	PROGRAM read ADDRESS N      takes N messages and says what they are
//
// and prints one JSON object a line: what became of a scenario (see Scenarios), which
// specimen was sent (see Write), or a message (see Read).
package foreign

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/interop/harness"
)

// limit is far above the time that all scenarios of one client take together.
const limit = 4 * time.Minute

// Client is a program written with one client.
type Client struct {
	Name    string   // as test names and addresses have it
	Title   string   // client and language, for people
	Folder  string   // interop/FOLDER holds sources, .clients/FOLDER what `make clients` builds of them; "": Name
	Sources []string // below interop/FOLDER, whatever the program is built of
	command []string // {src} stands for interop/FOLDER, {out} for .clients/FOLDER
	environ []string

	// CannotWrite and CannotRead are the specimens that the client has no way to write or to
	// read as they are, and why. Bytes that a client shows are compared in any case.
	CannotWrite, CannotRead map[string]string

	// Chokes are the specimens at which the client closes its link, and why.
	Chokes map[string]string
}

// Clients are all there are.
var Clients = []Client{GoAMQP, Proton, Rhea, JMS, ProtonJ2, ProtonCPP, Fe2o3}

var (
	// GoAMQP is go-amqp; it takes part in the exchange only.
	GoAMQP = Client{
		Name: "goamqp", Title: "go-amqp (Go)",
		command: []string{"go", "run", "{src}/suite"},
		CannotWrite: join(
			each("go-amqp doesn't implement decimals and char", "decimal32", "decimal64", "decimal128", "char", "char beyond BMP"),
			each("go-amqp makes strings of symbols", "symbol", "symbol 256", "described"),
			map[string]string{"value null": "go-amqp sends nothing at all for a message that encodes to no bytes"}),
		CannotRead: join(each("go-amqp makes strings of symbols", "symbol", "symbol 256", "described"),
			map[string]string{"value null": "go-amqp has no body rather than null"}),
		Chokes: each("go-amqp doesn't implement decimals and char", "decimal32", "decimal64", "decimal128", "char", "char beyond BMP"),
	}
	// Proton is the Python binding of Apache Qpid Proton.
	Proton = Client{
		Name: "proton", Title: "Proton (Python)", Sources: []string{"requirements.txt"},
		command:     []string{"{out}/bin/python", "-B", "{src}/suite/run.py"},
		environ:     []string{"PN_TRACE_FRM=", "MESSAGING_CONNECT_FILE="},
		CannotWrite: protonMessage, CannotRead: protonMessage,
	}
	// Rhea is rhea in Node.
	Rhea = Client{
		Name: "rhea", Title: "rhea (Node)", Sources: []string{"package.json", "package-lock.json"},
		command: []string{"node", "{src}/suite/main.js"},
		environ: []string{"NODE_PATH={out}/node_modules", "DEBUG="},
		CannotWrite: map[string]string{
			"every section":   "rhea writes the footer before the body",
			"value described": "rhea's encoder replaces the descriptor of a value by that of the section",
		},
	}
)

// JMS is Apache Qpid JMS. It writes messages of its own instead of specimens.
var JMS = Client{
	Name: "jms", Title: "Qpid JMS (Java)", Folder: "java", Sources: []string{"pom.xml", "suite"},
	command: java("jms.Main"),
	CannotRead: join(
		each("Qpid JMS makes bytes messages of binary values and of null", "binary", "binary 256", "null"),
		each("Java's char has 16 bits", "char beyond BMP"),
		map[string]string{
			"data, three sections":   "Qpid JMS keeps the last section of a body",
			"sequence, two sections": "Qpid JMS keeps the last section of a body",
		}),
}

// ProtonJ2 is Apache Qpid ProtonJ2.
var ProtonJ2 = Client{
	Name: "protonj2", Title: "ProtonJ2 (Java)", Folder: "java", Sources: []string{"pom.xml", "suite"},
	command:     java("protonj2.Main"),
	CannotWrite: protonJ2, CannotRead: protonJ2,
}

// protonJ2 is what ProtonJ2 changes between decoding and encoding a message.
var protonJ2 = join(
	each("ProtonJ2 makes longs of timestamps", "timestamp", "timestamp -1"),
	each("Java's char has 16 bits", "char beyond BMP"),
	each("ProtonJ2 doesn't encode a list with null in it", "list"),
	map[string]string{
		"sequence":      "ProtonJ2 doesn't encode a list with null in it",
		"every section": "ProtonJ2 makes longs of timestamps",
		"not durable":   "ProtonJ2 leaves header.durable out when it is false",
	})

func java(main string) []string {
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-cp", "{out}/classes:{out}/lib/*", main}
}

// ProtonCPP is the C++ binding of Apache Qpid Proton.
var ProtonCPP = Client{
	Name: "protoncpp", Title: "Proton (C++)", Sources: []string{"suite"},
	command:     []string{"{out}/suite"},
	environ:     []string{"PN_LOG=", "PN_TRACE_FRM=", "MESSAGING_CONNECT_FILE="},
	CannotWrite: protonMessage, CannotRead: protonMessage,
}

// Fe2o3 is fe2o3-amqp in Rust.
var Fe2o3 = Client{
	Name: "fe2o3", Title: "fe2o3-amqp (Rust)", Sources: []string{"Cargo.toml", "Cargo.lock", "suite"},
	command: []string{"{out}/target/debug/suite"},
	CannotWrite: map[string]string{
		"not durable": "fe2o3-amqp leaves header.durable out when it is false",
	},
	CannotRead: join(
		each("fe2o3-amqp doesn't read the descriptors that go-amqp makes strings of", "described"),
		map[string]string{
			"value null":     "fe2o3-amqp has null rather than no body",
			"jms properties": "fe2o3-amqp has null rather than no body",
		}),
}

// protonMessage is what Proton's message, the same in all its bindings, can't express.
var protonMessage = map[string]string{
	"data, three sections":   "Proton's message keeps the last section of a body",
	"sequence, two sections": "Proton's message keeps the last section of a body",
	"value null":             "Proton's message has no body rather than null",
	"not durable":            "Proton's message leaves header.durable out when it is false",
	"every section":          "Proton's message has no footer",
}

// each are the specimens that have values of these kinds in them.
func each(why string, kinds ...string) map[string]string {
	all := map[string]string{}
	for _, kind := range kinds {
		all["value "+kind], all["property "+kind], all["annotation "+kind] = why, why, why
	}
	return all
}

func join(lists ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}

// command is the program with the client's folders filled in, as a process to start.
func (c Client) process(ctx context.Context, url string, args ...string) (*exec.Cmd, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("{src}", c.src(root), "{out}", c.out(root))
	var words []string
	for _, word := range c.command {
		words = append(words, fill.Replace(word))
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], args...)...)
	cmd.Env = append(os.Environ(), "LETO_AMQP_URL="+url)
	for _, variable := range c.environ {
		cmd.Env = append(cmd.Env, fill.Replace(variable))
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

func (c Client) src(root string) string {
	return filepath.Join(root, "interop", cmp.Or(c.Folder, c.Name))
}

func (c Client) out(root string) string {
	return filepath.Join(root, ".clients", cmp.Or(c.Folder, c.Name))
}

// Need skips the test, or fails it in CI, when the program isn't built or when what it
// was built of has changed since.
func (c Client) Need(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a broker")
	}
	if err := c.built(); err != nil && c.command[0] != "go" {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func (c Client) built() error {
	root, err := harness.Root()
	if err != nil {
		return err
	}
	ready, err := os.Stat(filepath.Join(c.out(root), "ready"))
	if err != nil {
		return fmt.Errorf("%s: not built, `make clients` does it: %w", c.Name, err)
	}
	for _, name := range c.Sources {
		err := filepath.WalkDir(filepath.Join(c.src(root), name), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if source, err := os.Stat(path); err != nil {
				return err
			} else if !source.IsDir() && source.ModTime().After(ready.ModTime()) {
				return fmt.Errorf("%s has changed, `make clients` builds it", path)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// done is a line that a program prints.
type done struct {
	Scenario, Result, Text string // what became of a scenario: pass, skip or fail
	Ask                    string // "restart": kill the broker and start it again, then write a line
	Message, Skip          string // a specimen that was sent, or why it wasn't
	Raw, Again, Lost       string // a message that was read
}

// run starts the program and hands every line it prints to heard; what heard returns is
// written to the program's input.
func (c Client) run(ctx context.Context, url string, heard func(done) string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd, err := c.process(ctx, url, args...)
	if err != nil {
		return err
	}
	var errs tail
	cmd.Stderr = &errs
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	answers, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var odd error
	for read := bufio.NewReader(lines); ; {
		text, err := read.ReadString('\n')
		if err != nil {
			break
		}
		var line done
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			odd = fmt.Errorf("unexpected output %q", text)
			continue
		}
		if answer := heard(line); answer != "" {
			if _, err := io.WriteString(answers, answer); err != nil {
				odd = errors.Join(odd, err)
			}
		}
	}
	if err := errors.Join(odd, cmd.Wait(), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w\n%s", c.Name, err, errs.text)
	}
	return nil
}

// tail keeps the last of what a program says on standard error.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 16 << 10
	t.text = append(t.text, p...)
	if over := len(t.text) - most; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}
