package store

import (
	"encoding/binary"
	"fmt"

	"github.com/letomq/leto/engine/queue"
)

// Types of an annotation's value.
const (
	annotationString = iota + 1
	annotationLong
	annotationTimestamp
	annotationEncoded
)

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

func appendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// appendAnnotations encodes annotations behind their count. A value of an unknown type is left out.
func appendAnnotations(dst []byte, all []queue.Annotation) []byte {
	n := 0
	for i := range all {
		if annotationType(all[i].Value) != 0 {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := range all {
		a := &all[i]
		kind := annotationType(a.Value)
		if kind == 0 {
			continue
		}
		dst = append(appendString(dst, a.Key), kind)
		switch v := a.Value.(type) {
		case string:
			dst = appendString(dst, v)
		case int64:
			dst = binary.AppendUvarint(dst, zigzag(v))
		case queue.Millis:
			dst = binary.AppendUvarint(dst, zigzag(int64(v)))
		case queue.Encoded:
			dst = appendString(dst, v)
		}
	}
	return dst
}

func annotationType(value any) byte {
	switch value.(type) {
	case string:
		return annotationString
	case int64:
		return annotationLong
	case queue.Millis:
		return annotationTimestamp
	case queue.Encoded:
		return annotationEncoded
	}
	return 0
}

// skipAnnotations reads over annotations and returns their bytes with the count, or nil if there are none.
func (r *reader) skipAnnotations() []byte {
	start := r.b
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	for range n {
		r.string()
		switch kind := r.byte(); kind {
		case annotationString, annotationEncoded:
			r.string()
		case annotationLong, annotationTimestamp:
			r.uvarint()
		default:
			r.failed = true
		}
		if r.failed {
			return nil
		}
	}
	return start[:len(start)-len(r.b)]
}

// readAnnotations decodes what skipAnnotations returned. The result is the caller's own.
func readAnnotations(b []byte) ([]queue.Annotation, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := reader{b: b}
	n := r.uvarint()
	if n > uint64(len(b)) {
		return nil, fmt.Errorf("%w: %d annotations", errMalformed, n)
	}
	all := make([]queue.Annotation, 0, n)
	for range n {
		a := queue.Annotation{Key: string(r.string())}
		switch kind := r.byte(); kind {
		case annotationString:
			a.Value = string(r.string())
		case annotationLong:
			a.Value = unzigzag(r.uvarint())
		case annotationTimestamp:
			a.Value = queue.Millis(unzigzag(r.uvarint()))
		case annotationEncoded:
			a.Value = queue.Encoded(append([]byte(nil), r.string()...))
		default:
			return nil, fmt.Errorf("%w: annotation of type %d", errMalformed, kind)
		}
		all = append(all, a)
	}
	if r.failed || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: annotations", errMalformed)
	}
	return all, nil
}
