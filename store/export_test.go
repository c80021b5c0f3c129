package store

// PositionTime returns the index's time in a position file, 0 for none that is whole.
func PositionTime(b []byte) uint64 {
	var p position
	if !p.decode(b) {
		return 0
	}
	return p.time
}
