package codec

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// addVectors seeds a fuzzer with the octets of vectors.
func addVectors(f *testing.F, files ...string) {
	for _, file := range files {
		for _, v := range readVectors(f, file) {
			f.Add(v.octets)
		}
	}
}

// checkError fails unless err is of this package.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind < Truncated || e.Kind > Framing {
		t.Fatalf("error %v", err)
	}
	if strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 300 {
		t.Fatalf("error text %q", err)
	}
}

// checkAllocated fails when decoding b took more memory than its size and the
// limits justify. values is how many values may have been decoded.
func checkAllocated(t *testing.T, b []byte, values int, n uint64) {
	t.Helper()
	// What is allocated by the testing package at the same time is in the sum.
	const slack = 1 << 16
	if limit := 128*len(b) + values*32*MaxZeroWidth + slack; n > uint64(limit) {
		t.Fatalf("%d octets allocated for %d", n, len(b))
	}
}

func FuzzReadValue(f *testing.F) {
	addVectors(f, "values.txt", "termini.txt", "messages.txt")
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		var rest []byte
		var err error
		checkAllocated(t, b, 1, allocated(func() { v, rest, err = ReadValue(b) }))
		restSkip, errSkip := Skip(b)
		restValid, errValid := Validate(b)
		if errValid == nil && (errSkip != nil || len(restSkip) != len(restValid)) {
			t.Fatalf("validated to %d, skipped to %d, %v", len(restValid), len(restSkip), errSkip)
		}
		if err != nil {
			checkError(t, err)
			return
		}
		if errValid != nil || len(rest) != len(restValid) {
			t.Fatalf("read to %d, validated to %d, %v", len(rest), len(restValid), errValid)
		}
		if !bytes.HasSuffix(b, rest) {
			t.Fatal("rest is no suffix")
		}
		written, err := AppendValue(nil, v)
		if err != nil {
			t.Fatalf("%s: %v", text(v), err)
		}
		again, rest, err := ReadValue(written)
		if err != nil || len(rest) != 0 || text(again) != text(v) {
			t.Fatalf("read    %s\nwritten %x\nread    %s, %v", text(v), written, text(again), err)
		}
		if twice, err := AppendValue(nil, again); err != nil || !bytes.Equal(twice, written) {
			t.Fatalf("written %x\nthen    %x, %v", written, twice, err)
		}
	})
}

func FuzzSkip(f *testing.F) {
	addVectors(f, "values.txt", "performatives.txt")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, skip := range []func([]byte) ([]byte, error){Skip, Validate} {
			var rest []byte
			var err error
			if n := testing.AllocsPerRun(1, func() { rest, err = skip(b) }); err == nil && n != 0 {
				t.Fatalf("%v allocations", n)
			}
			if err != nil {
				checkError(t, err)
				continue
			}
			if len(rest) >= len(b) || !bytes.HasSuffix(b, rest) {
				t.Fatalf("rest %x of %x", rest, b)
			}
			// What is behind a value doesn't matter.
			value := b[:len(b)-len(rest)]
			if rest, err := skip(value); err != nil || len(rest) != 0 {
				t.Fatalf("%x alone: rest %x, %v", value, rest, err)
			}
		}
	})
}

func FuzzPerformative(f *testing.F) {
	addVectors(f, "performatives.txt", "termini.txt", "sasl.txt", "transactions.txt")
	f.Fuzz(func(t *testing.T, b []byte) {
		code, fields, err := ReadDescriptor(b)
		if err != nil {
			checkError(t, err)
			return
		}
		if composites[code] == nil {
			return
		}
		p := composites[code]()
		var rest []byte
		// An attach has the most fields that are decoded in their depth.
		checkAllocated(t, b, 8, allocated(func() { rest, err = p.Decode(fields) }))
		if err != nil {
			checkError(t, err)
			return
		}
		if !bytes.HasSuffix(b, rest) {
			t.Fatal("rest is no suffix")
		}
		written := p.Append(nil)
		again, rest, err := readComposite(written)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%s\nwritten %x: rest %x, %v", structText(p), written, rest, err)
		}
		if want, got := structText(p), structText(again); want != got && !strings.Contains(want, "Kind:unknown") {
			t.Fatalf("read %s\nthen %s", want, got)
		}
		if twice := again.Append(nil); !bytes.Equal(twice, written) {
			t.Fatalf("written %x\nthen    %x", written, twice)
		}
	})
}

func FuzzDeliveryState(f *testing.F) {
	addVectors(f, "outcomes.txt")
	f.Fuzz(func(t *testing.T, b []byte) {
		var s, again DeliveryState
		rest, err := s.Decode(b)
		if err != nil {
			checkError(t, err)
			return
		}
		if !bytes.HasSuffix(b, rest) {
			t.Fatal("rest is no suffix")
		}
		written := s.Append(nil)
		if rest, err := again.Decode(written); err != nil || len(rest) != 0 {
			t.Fatalf("%x: rest %x, %v", written, rest, err)
		}
		if want, got := structText(s), structText(again); want != got && s.Kind != StateUnknown {
			t.Fatalf("read %s\nthen %s", want, got)
		}
		if s.Annotations != nil {
			if _, err := ReadAnnotations(s.Annotations); err != nil {
				checkError(t, err)
			}
		}
	})
}

func FuzzSplit(f *testing.F) {
	addVectors(f, "messages.txt", "sections.txt")
	f.Add(message())
	f.Fuzz(func(t *testing.T, b []byte) { checkSplit(t, b) })
}

// checkSplit checks whatever holds for any octets taken for a message.
func checkSplit(t *testing.T, b []byte) {
	t.Helper()
	s, err := Split(b)
	if err != nil {
		checkError(t, err)
		return
	}
	hop := append(bytes.Clone(s.Header), s.DeliveryAnnotations...)
	bare := bytes.Join([][]byte{s.Properties, s.ApplicationProperties, s.Body}, nil)
	stored := bytes.Join([][]byte{s.MessageAnnotations, bare, s.Footer}, nil)
	if !bytes.Equal(append(hop, stored...), b) || !bytes.Equal(stored, s.Stored) || !bytes.Equal(bare, s.Bare) {
		t.Fatalf("sections %s of %x", sectionsText(s, b), b)
	}
	if again, err := Split(s.Stored); err != nil || !bytes.Equal(again.Bare, s.Bare) {
		t.Fatalf("stored part: %v", err)
	}
	if s.Header != nil {
		var h Header
		if err := h.Decode(s.Header); err != nil {
			checkError(t, err)
		}
	}
	if s.Properties != nil {
		checkProperties(t, s.Properties)
	}
	add := Map{{Symbol("x-opt-test"), Timestamp(1)}, {uint64(0), true}}
	merged, err := MergeAnnotations(nil, s.MessageAnnotations, add)
	if err != nil {
		checkError(t, err)
		return
	}
	whole := append(bytes.Clone(merged), s.Stored[len(s.MessageAnnotations):]...)
	again, err := Split(whole)
	if err != nil || !bytes.Equal(again.Bare, s.Bare) || len(again.MessageAnnotations) != len(merged) {
		t.Fatalf("merged %x: %v", merged, err)
	}
	// Merging the same once more changes nothing.
	twice, err := MergeAnnotations(nil, merged, add)
	if err != nil || !bytes.Equal(twice, merged) {
		t.Fatalf("merged %x\nthen   %x, %v", merged, twice, err)
	}
}

func checkProperties(t *testing.T, section []byte) {
	t.Helper()
	var p Properties
	errDecode := p.Decode(section)
	if errDecode != nil {
		checkError(t, errDecode)
	}
	var fields [][]byte
	for i := range propFields {
		value, err := PropertiesField(section, i)
		if err != nil {
			checkError(t, err)
			if errDecode == nil {
				t.Fatalf("decoded, but field %d: %v", i, err)
			}
			return
		}
		if value != nil {
			if rest, err := Skip(value); err != nil || len(rest) != 0 {
				t.Fatalf("field %d %x: %v", i, value, err)
			}
		} else {
			value = []byte{formatNull}
		}
		fields = append(fields, value)
	}
	// The fields one by one are the section.
	var again Properties
	if err := again.Decode(describe(CodeProperties, list32(fields...))); (err == nil) != (errDecode == nil) && !extraOctets(errDecode) {
		t.Fatalf("decoded %v, field by field %v", errDecode, err)
	}
	if errDecode == nil && structText(p) != structText(again) {
		t.Fatalf("decoded %s\nfield by field %s", structText(p), structText(again))
	}
}

// extraOctets tells the one fault that single fields don't show.
func extraOctets(err error) bool {
	return err != nil && strings.Contains(err.Error(), "octets behind")
}

// corpus returns what the files in testdata/fuzz hold.
func corpus(t *testing.T) map[string][]byte {
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, literal, ok := strings.Cut(string(content), "\n[]byte(")
		octets, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(literal), ")"))
		if !ok || err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		inputs[file] = []byte(octets)
	}
	return inputs
}

// Odd messages that fuzzers of other implementations have found.
func TestCorpusAsMessages(t *testing.T) {
	inputs := corpus(t)
	if len(inputs) < 30 {
		t.Fatalf("%d inputs", len(inputs))
	}
	for file, b := range inputs {
		t.Run(filepath.Base(file), func(t *testing.T) {
			checkSplit(t, b)
			for cut := range b {
				if _, err := Split(b[:cut]); err != nil {
					checkError(t, err)
				}
			}
		})
	}
}
