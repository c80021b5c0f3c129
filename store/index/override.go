package index

import "encoding/binary"

// override is what changed of an entry after its run was written.
func appendOverride(dst []byte, e *Entry) []byte {
	dst = append(dst, 1)
	dst = binary.AppendUvarint(dst, uint64(e.Count))
	dst = binary.AppendUvarint(dst, uint64(e.Base))
	var x Extra
	if e.Extra != nil {
		x = *e.Extra
	}
	dst = binary.AppendUvarint(dst, uint64(x.Due))
	dst = binary.AppendUvarint(dst, uint64(len(x.Annotations)))
	return append(dst, x.Annotations...)
}

// override puts a value of appendOverride over an entry.
func (e *Entry) override(value []byte) error {
	r := reader{b: value}
	if form := r.byte(); form != 1 {
		return errMalformed
	}
	e.Count, e.Base = uint32(r.uvarint()), uint32(r.uvarint())
	due, annotations := int64(r.uvarint()), r.bytes(r.uvarint())
	if r.failed || len(r.b) > 0 {
		return errMalformed
	}
	e.amend(due, append([]byte(nil), annotations...))
	return nil
}

// delay gives the entry another due time.
func (e *Entry) delay(due int64) {
	var annotations []byte
	if e.Extra != nil {
		annotations = e.Extra.Annotations
	}
	e.amend(due, annotations)
}

// amend replaces what of Extra may change.
func (e *Entry) amend(due int64, annotations []byte) {
	var parts []Part
	if e.Extra != nil {
		parts = e.Extra.Parts
	}
	e.Extra = nil
	if due != 0 || len(annotations) > 0 || len(parts) > 0 {
		e.Extra = &Extra{Due: due, Annotations: annotations, Parts: parts}
	}
}
