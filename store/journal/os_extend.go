package journal

// extend makes a file longer where a file system can't reserve room: the zeros that are written next do it.
func (f *osFile) extend(size int64) error {
	if have, err := f.Size(); err != nil || have >= size {
		return err
	}
	return f.Truncate(size)
}
