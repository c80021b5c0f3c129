package queue

import "slices"

// Annotation is a message annotation that the broker adds in front of what the sender wrote, or that a consumer asked
// for with a modified outcome. A later one replaces an earlier one, or a sender's, of the same key.
type Annotation struct {
	Key   string // a symbol
	Value any    // string, int64 (a long), Millis (a timestamp) or Encoded
}

// Millis is an annotation value that is written as a timestamp: unix milliseconds.
type Millis int64

// Encoded is an annotation value that is already in wire form. It is immutable.
type Encoded []byte

// What one entry may gather: a consumer that modifies a message for ever must not make it grow for ever.
const (
	maxAnnotations     = 64
	maxAnnotationBytes = 16 << 10
)

// size returns roughly the bytes that the annotation takes on the wire.
func (a Annotation) size() int {
	n := len(a.Key) + 10
	switch v := a.Value.(type) {
	case string:
		n += len(v)
	case Encoded:
		n += len(v)
	}
	return n
}

// AnnotationBytes returns roughly the bytes that annotations take on the wire.
func AnnotationBytes(all []Annotation) (bytes int) {
	for _, a := range all {
		bytes += a.size()
	}
	return bytes
}

// mergeAnnotations returns old with add over it, as a new slice. What would exceed the bounds is left out.
func mergeAnnotations(old, add []Annotation) []Annotation {
	merged := slices.Clone(old)
	bytes := AnnotationBytes(merged)
	for _, a := range add {
		at := slices.IndexFunc(merged, func(m Annotation) bool { return m.Key == a.Key })
		grow := a.size()
		if at >= 0 {
			grow -= merged[at].size()
		}
		if bytes+grow > maxAnnotationBytes || at < 0 && len(merged) == maxAnnotations {
			continue
		}
		bytes += grow
		if at >= 0 {
			merged[at] = a
		} else {
			merged = append(merged, a)
		}
	}
	return merged
}
