package store

type statement struct{}

// collectGarbage gives back what is needed no more.
func (s *Store) collectGarbage() error { return nil }
