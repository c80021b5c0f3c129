// Package corpora replays inputs that broke other AMQP implementations against the
// leto binary, from outside, and watches that the broker keeps serving and lets go of
// all that they made it hold.
package corpora

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/letomq/leto/interop/harness"
)

// broker is shared by all tests of the package, which run one after the other: they
// measure it.
var broker *harness.Broker

func TestMain(m *testing.M) { os.Exit(harness.Run(m, &broker)) }

// input is one file of a corpus.
type input struct {
	name string
	data []byte
}

// inputs are the files of the archive below a folder.
func inputs(t *testing.T, folder string) []input {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "testdata", "corpora", "amqp-stream-and-message-inputs.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []input
	for archive := tar.NewReader(plain); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag != tar.TypeReg || !strings.HasPrefix(entry.Name, folder+"/") {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, input{entry.Name, data})
	}
}
