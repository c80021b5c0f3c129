package queue

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
