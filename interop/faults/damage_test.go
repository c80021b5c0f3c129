package faults

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	many = 200
	size = 1000
)

// flip changes one bit of message i where it lies in a segment: in its body, or in the header of the record that it is
// in. It returns the segment's name, and what changes the bit back.
func (n *node) flip(i int, header bool) (segment string, undo func()) {
	n.t.Helper()
	names, err := filepath.Glob(filepath.Join(n.data, "journal", "0*.seg"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			n.t.Fatal(err)
		}
		at := bytes.Index(b, body(i, 0))
		if at < 0 {
			continue
		}
		if header {
			at = record(b, at)
		}
		write := func(c byte) {
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt([]byte{c}, int64(at))
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				n.t.Fatal(err)
			}
		}
		write(b[at] ^ 1<<3)
		return strings.TrimSuffix(filepath.Base(name), ".seg"), func() { write(b[at]) }
	}
	n.t.Fatalf("message %d is in no segment", i)
	return "", nil
}

// record returns where the index stands in the header of the record that has what is at an offset: store/FORMAT.md.
func record(segment []byte, at int) int {
	for r := 4096; ; {
		length := int(binary.BigEndian.Uint32(segment[r:]))
		end := r + (32+length+7)/8*8
		if at < end {
			return r + 8
		}
		r = end
	}
}

// TestBitFlipsInABody: a body that isn't what was written is never delivered, and holds up nobody. The broker says
// which one it is, and so does a check.
func TestBitFlipsInABody(t *testing.T) {
	t.Parallel()
	n := newNode(t, filepath.Join(t.TempDir(), "data"))
	n.send(0, many, size)
	n.stop()
	segment, _ := n.flip(57, false)

	out, code := n.check()
	if code != 1 || !strings.Contains(out, segment) || !strings.Contains(out, "corrupt") {
		t.Errorf("check exits with %d and says:\n%s", code, out)
	}
	// An export has the others, and says so.
	export := filepath.Join(t.TempDir(), "export")
	out, code = n.leto("store", "export", export, "--data", n.data)
	if code != 1 || !strings.Contains(out, "1 messages are left out") || !strings.Contains(out, segment) {
		t.Errorf("export exits with %d and says:\n%s", code, out)
	}
	again := *n
	again.data = filepath.Join(t.TempDir(), "again")
	if out, code := n.leto("store", "import", export, "--data", again.data); code != 0 {
		t.Errorf("import exits with %d and says:\n%s", code, out)
	}
	if out, code := again.check(); code != 0 || !strings.Contains(out, fmt.Sprint(many-1, " messages")) {
		t.Errorf("check of the import exits with %d and says:\n%s", code, out)
	}
	for range 2 {
		n.start()
		out, code = n.leto("store", "export", export, "--yes", "--online", "--admin-url", "http://"+n.HTTP)
		if code != 1 || !strings.Contains(out, "1 messages are left out") {
			t.Errorf("export of the running broker exits with %d and says:\n%s", code, out)
		}
		n.stop()
		n.start()
		n.look(0, many, size, 57)
		if log := n.Log(); strings.Count(log, "is corrupt in segment "+segment) != 1 {
			t.Errorf("want one line about the message, the log is:\n%s", log)
		}
		if bad, err := n.Metric("leto_store_bad_bodies_total"); err != nil || bad != 1 {
			t.Errorf("%v bad bodies: %v", bad, err)
		}
		n.stop()
	}
	n.start() // it holds up nobody
	n.send(many, many+1, size)
	n.take(many - 1)
	n.look(many, many+1, size)
	n.stop()
}

// TestBitFlipsInARecord: what is behind the checkpoint is served nonetheless, and a check names it. What the store
// needs to read at its start is refused, and nothing is changed.
func TestBitFlipsInARecord(t *testing.T) {
	t.Parallel()
	n := newNode(t, filepath.Join(t.TempDir(), "data"))
	n.send(0, many, size)
	n.stop()
	segment, _ := n.flip(90, true)

	out, code := n.check()
	if code != 1 || !strings.Contains(out, "segment "+segment+" is corrupt") {
		t.Errorf("check exits with %d and says:\n%s", code, out)
	}
	n.start()
	n.look(0, many, size)
	n.stop()

	n.remove("index/MANIFEST")
	log := n.refuses()
	for _, want := range []string{"is damaged", "segment " + segment + " is corrupt", "nothing was changed", "backup"} {
		if !strings.Contains(log, want) {
			t.Errorf("the refusal doesn't say %q:\n%s", want, log)
		}
	}
}

// TestBitFlipsBehindTheCheckpoint: the index needs the journal from its checkpoint on. A record there that isn't whole,
// with whole ones behind it, was flushed and has been changed: nothing is served.
func TestBitFlipsBehindTheCheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t, filepath.Join(t.TempDir(), "data"))
	n.send(0, many, size)
	n.kill()
	n.remove("position") // so that all is needed, whenever the last checkpoint was
	segment, undo := n.flip(100, false)
	log := n.refuses()
	if !strings.Contains(log, "is damaged") || !strings.Contains(log, segment) {
		t.Errorf("the refusal says:\n%s", log)
	}
	if out, code := n.check(); code != 1 || !strings.Contains(out, segment) {
		t.Errorf("check exits with %d and says:\n%s", code, out)
	}
	undo()
	n.start()
	n.look(0, many, size)
}

// TestMissingFiles takes away what the index consists of. The broker makes it anew from the journal, says so, and has
// all messages.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern string
		killed  bool
		silent  bool // it need not be noticed: nothing depends on it
	}{
		{"index/MANIFEST", false, false},
		{"index/*.sst", false, false},
		{"index/*.mem", true, false},
		{"index/KEYREGISTRY", false, true},
		{"index/*", false, false},
		{"position", false, false},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			n := newNode(t, filepath.Join(t.TempDir(), "data"))
			n.send(0, many, size)
			n.take(20) // what is settled must not come back
			if test.killed {
				n.checkpointed()
				n.kill()
			} else {
				n.stop()
			}
			n.remove(test.pattern)
			n.start()
			if !test.silent && !strings.Contains(n.Log(), "made anew") {
				t.Errorf("the broker doesn't say that the index is made anew:\n%s", n.Log())
			}
			n.look(20, many, size)
			n.stop()
			if out, code := n.check(); code != 0 {
				t.Errorf("check exits with %d and says:\n%s", code, out)
			}
		})
	}
}
