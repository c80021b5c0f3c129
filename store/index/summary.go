package index

import "encoding/binary"

func appendSummary(dst []byte, s *Summary) []byte {
	dst = append(dst, 1)
	dst = binary.AppendUvarint(dst, uint64(len(s.Levels)))
	for i := range s.Levels {
		l := &s.Levels[i]
		dst = append(dst, l.Priority)
		for _, v := range [...]uint64{l.Entries, l.Bytes, l.Head, l.Last, l.Overrides} {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	return dst
}

func decodeSummary(value []byte) (*Summary, error) {
	r := reader{b: value}
	if form := r.byte(); form != 1 {
		return nil, errMalformed
	}
	s := &Summary{}
	for range min(r.uvarint(), Priorities) {
		s.Levels = append(s.Levels, Level{
			Priority: r.byte(), Entries: r.uvarint(), Bytes: r.uvarint(),
			Head: r.uvarint(), Last: r.uvarint(), Overrides: r.uvarint(),
		})
	}
	if r.failed || len(r.b) > 0 {
		return nil, errMalformed
	}
	return s, nil
}
