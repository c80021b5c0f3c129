package journal_test

import (
	"encoding/hex"
	"testing"

	"github.com/letomq/leto/store/journal/crashfs"

	"github.com/letomq/leto/store/journal"
)

// TestGoldenBytes holds the form of a segment. The bytes were put together from FORMAT.md, the checksums computed bit
// by bit outside of this package. Lengths, indexes and so on are in the order in which they stand.
func TestGoldenBytes(t *testing.T) {
	fs := crashfs.New()
	j := begin(t, options(fs), 7)
	add(t, j, journal.KindPart, "part of a body")
	add(t, j, journal.KindWindow, "facts")
	flush(t, j)
	closeJournal(t, j)
	image := fs.ReadFile(segmentName(1))
	if len(image) != small {
		t.Fatalf("%d bytes", len(image))
	}
	for _, c := range []struct {
		what   string
		offset int
		bytes  string
	}{
		{"header", 0, "4c45544f4a524e4c" + "0001" + "0000" + "0000000000000001" + "a00102030405060708090a0b0c0d0e0f" +
			"0000000000000007" + "0000000000000001" + "0000000000010000" + "45592cd1" + "0000000000000000"},
		{"epoch begins", 4096, "0000000a" + "82ceef28" + "0000000000000001" + "0000000000000007" + "03010000" + "00000000" +
			"0001" + "0000000000000007" + "000000000000"},
		{"body part", 4144, "0000000e" + "ebdc732b" + "0000000000000002" + "0000000000000007" + "02010000" + "00000000" +
			"70617274206f66206120626f6479" + "0000"},
		{"window", 4192, "00000005" + "bde6beb4" + "0000000000000003" + "0000000000000007" + "01010000" + "00000001" +
			"6661637473" + "000000"},
		{"end of segment", 4232, "00000008" + "16f2ce46" + "0000000000000004" + "0000000000000007" + "04010000" + "00000000" +
			"0000000000000001"},
		{"nothing", 4272, "0000000000000000"},
	} {
		want, err := hex.DecodeString(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := image[c.offset:][:len(want)]; string(got) != string(want) {
			t.Errorf("%s:\n%x, want\n%x", c.what, got, want)
		}
	}
}
