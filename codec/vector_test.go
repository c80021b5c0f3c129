package codec

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// vector is one line of a file in testdata/vectors.
type vector struct {
	file, name string
	octets     []byte
	form       string // "=", "~" or "!"
	meaning    string
}

func readVectors(t testing.TB, file string) []vector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 4 {
			t.Fatalf("%s:%d: %d columns", file, i+1, len(columns))
		}
		for j := range columns {
			columns[j] = strings.TrimSpace(columns[j])
		}
		if seen[columns[0]] || !strings.Contains("=~!", columns[2]) {
			t.Fatalf("%s:%d: name %q twice, or form %q unknown", file, i+1, columns[0], columns[2])
		}
		seen[columns[0]] = true
		octets, rest := parseOctets(t, columns[1], 0)
		if rest != "" {
			t.Fatalf("%s:%d: %q left over", file, i+1, rest)
		}
		vectors = append(vectors, vector{file, columns[0], octets, columns[2], columns[3]})
	}
	return vectors
}

// parseOctets reads the notation that testdata/vectors describes, up to the
// closing bracket.
func parseOctets(t testing.TB, s string, closing byte) (b []byte, rest string) {
	t.Helper()
	for s != "" {
		switch c := s[0]; {
		case c == ' ':
			s = s[1:]
		case c == closing:
			return b, s[1:]
		case c == '(':
			var inner []byte
			inner, s = parseOctets(t, s[1:], ')')
			b = append(append(b, byte(len(inner))), inner...)
		case c == '[':
			var inner []byte
			inner, s = parseOctets(t, s[1:], ']')
			n := len(inner)
			b = append(append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), inner...)
		case c == '\'':
			end := strings.IndexByte(s[1:], '\'') + 1
			b = append(b, s[1:end]...)
			s = s[end+1:]
		default:
			v, err := hex.DecodeString(s[:2])
			if err != nil {
				t.Fatalf("octets %q: %v", s, err)
			}
			s = s[2:]
			times := 1
			if strings.HasPrefix(s, "*") {
				digits := s[1:]
				if end := strings.IndexAny(digits, " )]"); end >= 0 {
					digits = digits[:end]
				}
				if times, err = strconv.Atoi(digits); err != nil {
					t.Fatalf("octets %q: %v", s, err)
				}
				s = s[1+len(digits):]
			}
			b = append(b, bytes.Repeat(v, times)...)
		}
	}
	return b, ""
}

// text writes a value as testdata/vectors does.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case uint8:
		return fmt.Sprint("ubyte ", v)
	case uint16:
		return fmt.Sprint("ushort ", v)
	case uint32:
		return fmt.Sprint("uint ", v)
	case uint64:
		return fmt.Sprint("ulong ", v)
	case int8:
		return fmt.Sprint("byte ", v)
	case int16:
		return fmt.Sprint("short ", v)
	case int32:
		return fmt.Sprint("int ", v)
	case int64:
		return fmt.Sprint("long ", v)
	case float32:
		return fmt.Sprintf("float %08x", math.Float32bits(v))
	case float64:
		return fmt.Sprintf("double %016x", math.Float64bits(v))
	case Decimal32:
		return fmt.Sprintf("decimal32 %x", v[:])
	case Decimal64:
		return fmt.Sprintf("decimal64 %x", v[:])
	case Decimal128:
		return fmt.Sprintf("decimal128 %x", v[:])
	case Char:
		return fmt.Sprintf("char %x", uint32(v))
	case Timestamp:
		return fmt.Sprint("timestamp ", int64(v))
	case UUID:
		return "uuid " + octetsText(v[:])
	case []byte:
		return strings.TrimSpace("binary " + octetsText(v))
	case string:
		if s, ok := repeated([]byte(v)); ok {
			return "string " + s
		}
		return "string " + strconv.Quote(v)
	case Symbol:
		return strings.TrimSpace("symbol " + symbolText(v))
	case List:
		var s []string
		for _, e := range v {
			s = append(s, text(e))
		}
		return "[" + strings.Join(s, ", ") + "]"
	case Map:
		var s []string
		for _, p := range v {
			s = append(s, text(p.Key)+": "+text(p.Value))
		}
		return "{" + strings.Join(s, ", ") + "}"
	case Array:
		s := "array "
		if v.Descriptor != nil {
			s += "@" + text(v.Descriptor) + " "
		}
		return s + fmt.Sprintf("%02x ", v.Code) + text(List(v.Elements))
	case Described:
		return "@" + text(v.Descriptor) + " " + text(v.Value)
	}
	return fmt.Sprintf("%T?", v)
}

// repeated is how many equal octets are written.
func repeated(b []byte) (string, bool) {
	if len(b) < 16 || len(bytes.Trim(b, string(b[:1]))) > 0 {
		return "", false
	}
	return fmt.Sprintf("%02x*%d", b[0], len(b)), true
}

func octetsText(b []byte) string {
	if s, ok := repeated(b); ok {
		return s
	}
	return hex.EncodeToString(b)
}

func symbolText(s Symbol) string {
	if r, ok := repeated([]byte(s)); ok {
		return r
	}
	return string(s)
}

// structText writes a struct's fields but for those that are zero or absent.
func structText(v any) string {
	r := reflect.Indirect(reflect.ValueOf(v))
	return r.Type().Name() + "{" + strings.Join(fieldTexts(r, ""), " ") + "}"
}

func fieldTexts(r reflect.Value, prefix string) (s []string) {
	for i := range r.NumField() {
		name, f := r.Type().Field(i).Name, r.Field(i)
		if r.Type().Field(i).Anonymous {
			s = append(s, fieldTexts(f, "Outcome.")...)
			continue
		}
		if f.IsZero() {
			continue
		}
		if name == "TxnID" {
			name = prefix + name
		}
		s = append(s, name+":"+fieldText(f))
	}
	return s
}

func fieldText(f reflect.Value) string {
	if f.Kind() == reflect.Interface {
		return text(f.Interface())
	}
	switch v := f.Interface().(type) {
	case string:
		if s, ok := repeated([]byte(v)); ok {
			return strconv.Quote(s)
		}
		return strconv.Quote(v)
	case Symbol:
		return strconv.Quote(string(v))
	case []byte:
		return octetsText(v)
	case Map:
		return text(v)
	case Role, StateKind:
		return fmt.Sprint(v)
	}
	switch f.Kind() {
	case reflect.Pointer:
		return structText(f.Interface())
	case reflect.Struct:
		if f.NumField() == 2 && f.Type().Field(1).Name == "Set" {
			return fieldText(f.Field(0))
		}
		return "{" + strings.Join(fieldTexts(f, ""), " ") + "}"
	}
	return fmt.Sprint(f.Interface())
}

// run checks one vector against read, and what it means against write. write
// returns nil for what it can't write back.
func (v vector) run(t *testing.T, read func([]byte) (meaning string, rest []byte, err error), write func() []byte) {
	t.Run(v.name, func(t *testing.T) {
		meaning, rest, err := read(v.octets)
		if v.form == "!" {
			if err == nil {
				t.Fatalf("%x read as %s, want error %q", v.octets, meaning, v.meaning)
			}
			if err.Error() != v.meaning {
				t.Fatalf("%x: error %q, want %q", v.octets, err, v.meaning)
			}
			return
		}
		if err != nil {
			t.Fatalf("%x: %v", v.octets, err)
		}
		if len(rest) != 0 {
			t.Errorf("%x: rest %x", v.octets, rest)
		}
		if meaning != v.meaning {
			t.Errorf("%x\n read %s\n want %s", v.octets, meaning, v.meaning)
		}
		if write == nil || strings.Contains(meaning, "Kind:unknown") {
			return // there is nothing to write, or it becomes null
		}
		written := write()
		if same := bytes.Equal(written, v.octets); same != (v.form == "=") {
			t.Errorf("form %s\n read    %x\n written %x", v.form, v.octets, written)
		}
		again, _, err := read(written)
		if err != nil || again != meaning {
			t.Errorf("written %x\n read as %s, %v\n want    %s", written, again, err, meaning)
		}
	})
}

func TestVectorsOfValues(t *testing.T) {
	for _, v := range readVectors(t, "values.txt") {
		var last any
		v.run(t, func(b []byte) (string, []byte, error) {
			var rest []byte
			var err error
			last, rest, err = ReadValue(b)
			return text(last), rest, err
		}, func() []byte {
			b, err := AppendValue(nil, last)
			if err != nil {
				t.Fatal(err)
			}
			return b
		})
	}
}

// TestVectorsOfValuesSkipped checks that Skip and Validate agree with
// ReadValue about where a value ends, and Validate about what is legal.
func TestVectorsOfValuesSkipped(t *testing.T) {
	// What only reading finds.
	content := []string{"UTF-8", "ASCII", "same key"}
	for _, v := range readVectors(t, "values.txt") {
		octets, behind := v.octets, 0
		if v.form != "!" {
			octets, behind = append(bytes.Clone(octets), 0xaa, 0xbb), 2
		}
		_, restRead, errRead := ReadValue(octets)
		restValid, errValid := Validate(octets)
		restSkip, errSkip := Skip(octets)
		if v.form != "!" {
			if errRead != nil || errValid != nil || errSkip != nil || len(restRead) != behind || len(restValid) != behind || len(restSkip) != behind {
				t.Errorf("%s: rests %x %x %x, errors %v %v", v.name, restRead, restValid, restSkip, errValid, errSkip)
			}
			continue
		}
		if errSkip != nil && errValid == nil {
			t.Errorf("%s: Skip says %v, Validate nothing", v.name, errSkip)
		}
		onlyContent := false
		for _, c := range content {
			onlyContent = onlyContent || strings.Contains(errRead.Error(), c)
		}
		if (errValid == nil) != onlyContent {
			t.Errorf("%s: ReadValue says %v, Validate %v", v.name, errRead, errValid)
		}
	}
}

// composite is what every performative and terminus offers.
type composite interface {
	Decode([]byte) ([]byte, error)
	Append([]byte) []byte
}

var composites = map[Code]func() composite{
	CodeOpen:           func() composite { return new(Open) },
	CodeBegin:          func() composite { return new(Begin) },
	CodeAttach:         func() composite { return new(Attach) },
	CodeFlow:           func() composite { return new(Flow) },
	CodeTransfer:       func() composite { return new(Transfer) },
	CodeDisposition:    func() composite { return new(Disposition) },
	CodeDetach:         func() composite { return new(Detach) },
	CodeEnd:            func() composite { return new(End) },
	CodeClose:          func() composite { return new(Close) },
	CodeError:          func() composite { return new(ErrorInfo) },
	CodeSource:         func() composite { return new(Source) },
	CodeTarget:         func() composite { return new(Target) },
	CodeCoordinator:    func() composite { return new(Coordinator) },
	CodeDeclare:        func() composite { return new(Declare) },
	CodeDischarge:      func() composite { return new(Discharge) },
	CodeSASLMechanisms: func() composite { return new(SASLMechanisms) },
	CodeSASLInit:       func() composite { return new(SASLInit) },
	CodeSASLChallenge:  func() composite { return new(SASLChallenge) },
	CodeSASLResponse:   func() composite { return new(SASLResponse) },
	CodeSASLOutcome:    func() composite { return new(SASLOutcome) },
}

// readComposite reads a described composite value as a connection would.
func readComposite(b []byte) (composite, []byte, error) {
	code, fields, err := ReadDescriptor(b)
	if err != nil {
		return nil, nil, err
	}
	c := composites[code]
	if c == nil {
		return nil, nil, fmt.Errorf("no composite %v", code)
	}
	p := c()
	rest, err := p.Decode(fields)
	return p, rest, err
}

func TestVectorsOfComposites(t *testing.T) {
	for _, file := range []string{"performatives.txt", "termini.txt", "sasl.txt", "transactions.txt"} {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			for _, v := range readVectors(t, file) {
				var last composite
				v.run(t, func(b []byte) (string, []byte, error) {
					var rest []byte
					var err error
					if last, rest, err = readComposite(b); err != nil {
						return "", nil, err
					}
					return structText(last), rest, nil
				}, func() []byte { return last.Append(nil) })
			}
		})
	}
}

func TestVectorsOfOutcomes(t *testing.T) {
	for _, v := range readVectors(t, "outcomes.txt") {
		var last DeliveryState
		v.run(t, func(b []byte) (string, []byte, error) {
			rest, err := last.Decode(b)
			return structText(last), rest, err
		}, func() []byte { return last.Append(nil) })
	}
}

func TestVectorsOfSections(t *testing.T) {
	for _, v := range readVectors(t, "sections.txt") {
		if strings.HasPrefix(v.name, "header") {
			var last Header
			v.run(t, func(b []byte) (string, []byte, error) {
				err := last.Decode(b)
				return structText(last), nil, err
			}, func() []byte { return last.Append(nil) })
			continue
		}
		var last Properties
		v.run(t, func(b []byte) (string, []byte, error) {
			err := last.Decode(b)
			return structText(last), nil, err
		}, func() []byte { return last.Append(nil) })
	}
}

func TestVectorsOfMessages(t *testing.T) {
	for _, v := range readVectors(t, "messages.txt") {
		v.run(t, func(b []byte) (string, []byte, error) {
			s, err := Split(b)
			return sectionsText(s, b), nil, err
		}, nil)
	}
}

func sectionsText(s Sections, message []byte) string {
	var out []string
	for _, part := range []struct {
		name string
		b    []byte
	}{
		{"header", s.Header},
		{"delivery-annotations", s.DeliveryAnnotations},
		{"message-annotations", s.MessageAnnotations},
		{"properties", s.Properties},
		{"application-properties", s.ApplicationProperties},
		{"body", s.Body},
		{"footer", s.Footer},
		{"stored", s.Stored},
		{"bare", s.Bare},
	} {
		if part.b == nil {
			continue
		}
		at := 0
		for at < len(message) && &message[at] != &part.b[0] {
			at++
		}
		out = append(out, fmt.Sprintf("%s %d-%d", part.name, at, at+len(part.b)))
	}
	return strings.Join(out, " ")
}

func TestVectorsOfFrames(t *testing.T) {
	for _, v := range readVectors(t, "frames.txt") {
		v.run(t, func(b []byte) (string, []byte, error) {
			h, err := ReadFrameHeader(b)
			return fmt.Sprintf("size %d offset %d type %d channel %d", h.Size, h.DataOffset, h.Type, h.Channel), nil, err
		}, nil)
	}
}
