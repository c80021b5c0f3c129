package index

import "encoding/binary"

// summaryForm is the form of a summary; one of form 1 has nothing that is delayed.
const summaryForm = 2

func appendSummary(dst []byte, s *Summary) []byte {
	dst = append(dst, summaryForm)
	dst = binary.AppendUvarint(dst, uint64(len(s.Levels)))
	for i := range s.Levels {
		l := &s.Levels[i]
		dst = append(dst, l.Priority)
		for _, v := range [...]uint64{l.Entries, l.Bytes, l.Head, l.Last, l.Overrides, l.Delayed} {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	return dst
}

func decodeSummary(value []byte) (*Summary, error) {
	r := reader{b: value}
	form := r.byte()
	if form < 1 || form > summaryForm {
		return nil, errMalformed
	}
	s := &Summary{}
	for range min(r.uvarint(), Priorities) {
		l := Level{
			Priority: r.byte(), Entries: r.uvarint(), Bytes: r.uvarint(),
			Head: r.uvarint(), Last: r.uvarint(), Overrides: r.uvarint(),
		}
		if form > 1 {
			l.Delayed = r.uvarint()
		}
		s.Levels = append(s.Levels, l)
	}
	if r.failed || len(r.b) > 0 {
		return nil, errMalformed
	}
	return s, nil
}
