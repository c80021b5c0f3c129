package engine

import "crypto/sha256"

// DuplicateID stands for the id that a producer has given a message so that it is taken once only. It is the beginning
// of a SHA-256, of which 128 bits are enough not to be met twice by chance, in all ids that a broker ever sees; and who
// wants to give a message the id of somebody else's, without knowing that, finds none. The zero value is no id.
type DuplicateID [16]byte

// NewDuplicateID returns what stands for an id, which may be of any length.
func NewDuplicateID(id []byte) (d DuplicateID) {
	sum := sha256.Sum256(id)
	copy(d[:], sum[:])
	return d
}
