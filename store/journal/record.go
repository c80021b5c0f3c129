package journal

// Kind says what a record's payload is.
type Kind uint8

const (
	KindWindow Kind = 1 // facts of one commit
	KindPart   Kind = 2 // bytes of a large body that a window names
	KindEpoch  Kind = 3 // an epoch begins: format version u16, epoch u64. Written by Begin
	kindEnd    Kind = 4 // the segment ends here; seen by nobody but the journal
)

// Record is one record of the journal.
type Record struct {
	Kind    Kind
	Index   uint64 // 1, 2, 3 … over all segments and epochs
	Epoch   uint64
	Segment uint64
	Offset  int64  // of the payload in the segment
	Length  int64  // of the payload, bytes
	Payload []byte // Replay: valid during the call. Append leaves it nil
}

// Position is a place between two records: that of the record that comes next. The zero Position is the journal's
// beginning.
type Position struct {
	Index   uint64 // of the record that comes next
	Segment uint64
	Offset  int64 // where its header is, or the segment's end if it is in the next one
}

// Next returns the position behind the record.
func (r Record) Next() Position {
	return Position{Index: r.Index + 1, Segment: r.Segment, Offset: align(r.Offset + r.Length)}
}

// Place says where bytes lie in the journal and what their checksum is.
type Place struct {
	Segment uint64
	Offset  uint32 // in the segment
	Length  uint32 // bytes
	CRC     uint32 // Checksum of the bytes
}

func align(n int64) int64 { return (n + recordAlign - 1) &^ (recordAlign - 1) }

const recordAlign = 8
