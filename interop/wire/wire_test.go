package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestSplitFindsEverySection(t *testing.T) {
	header := Described(SectionHeader, List(Bool(true)))
	delivery := Described(SectionDeliveryAnnotations, Map(Symbol("d"), Null()))
	annotations := Described(SectionMessageAnnotations, Map(Symbol("m"), Ubyte(1)))
	bare := append(Described(SectionProperties, List(String("id"))), Described(SectionData, Binary(make([]byte, 300)))...)
	footer := Described(SectionFooter, Map(Symbol("f"), Ulong(7)))
	m, err := Split(bytes.Join([][]byte{header, delivery, annotations, bare, footer}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][2][]byte{
		{m.Header, header},
		{m.DeliveryAnnotations, delivery},
		{m.MessageAnnotations, annotations},
		{m.Bare, bare},
		{m.Footer, footer},
	} {
		if !bytes.Equal(part[0], part[1]) {
			t.Errorf("section: got % x, want % x", part[0], part[1])
		}
	}
}

func TestIntactSeesOneChangedByte(t *testing.T) {
	sent := append(Described(SectionProperties, List(String("id"))), Described(SectionData, Binary([]byte("body")))...)
	if err := Intact(sent, append(Described(SectionHeader, List(Bool(true))), sent...)); err != nil {
		t.Errorf("a header makes no difference: %v", err)
	}
	for i := range sent {
		changed := bytes.Clone(sent)
		changed[i] ^= 1
		if Intact(sent, changed) == nil {
			t.Errorf("a change of byte %d goes unnoticed", i)
		}
	}
	stray := append(Described(SectionDeliveryAnnotations, Map(Symbol("d"), Null())), sent...)
	if err := Intact(sent, stray); err == nil || !strings.Contains(err.Error(), "delivery annotations") {
		t.Errorf("delivery annotations that came along: %v", err)
	}
}

func TestMessagesJoinsTransfers(t *testing.T) {
	stream := bytes.Join([][]byte{
		HeaderAMQP, Open("c", 512), Begin(), AttachSender(3, "l", "a"),
		Transfer(3, 0, true, []byte("ab")), Transfer(4, 1, false, []byte("xyz")),
		Continue(3, true, nil), Continue(3, false, []byte("c")), Close()[:9],
	}, nil)
	got, err := Messages(stream)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0]) != "xyz" || string(got[1]) != "abc" {
		t.Errorf("messages: %q", got)
	}
}

func TestValuesReachTheirEnd(t *testing.T) {
	long := strings.Repeat("s", 300)
	for _, value := range [][]byte{
		Null(), Bool(true), Ubyte(1), Uint(1), Ulong(1), Timestamp(-1), String("x"), String(long), Symbol(long), Binary(nil),
		List(), List(String(long)), Map(Symbol("k"), List(Null())), Described(0x24, List()), Described(0x100000000, Null()),
	} {
		got, rest, err := Next(append(bytes.Clone(value), 0xff))
		if err != nil || !bytes.Equal(got, value) || len(rest) != 1 {
			t.Errorf("% x: got % x, rest % x, %v", value, got, rest, err)
		}
		for cut := range value {
			if _, _, err := Next(value[:cut]); err == nil {
				t.Errorf("% x: no error when cut at %d", value, cut)
			}
		}
	}
}
