package journal

import "fmt"

// Flush writes the group and returns when it is on the device: one write and one flush, or one of each for each
// segment that the group reaches into. On ErrFull nothing of it is in the journal. On ErrFailed any beginning of it
// may be there after a restart.
func (j *Journal) Flush() error {
	if err := j.usable(); err != nil {
		j.group.drop(j)
		return err
	}
	if j.group.file == nil {
		return ErrNotBegun
	}
	return j.flush()
}

func (j *Journal) flush() error {
	g := &j.group
	if len(g.chunks) == 0 {
		return nil
	}
	g.pad()
	for i := range g.chunks {
		written, err := j.write(&g.chunks[i])
		if err == nil {
			continue
		}
		// A segment that only got its header holds nothing, and gets the same header when it is taken again.
		if i == 0 && !written && isFull(err) {
			g.drop(j)
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		for _, p := range g.taken {
			_ = p.file.Close()
		}
		g.taken = nil
		return j.fail(err)
	}
	j.settle()
	return nil
}

// write brings one chunk to the device; written says whether any byte of a record may be there when that failed.
// Segments are written one after the other, each flushed before the next is begun: so a header tells that what stands
// in the segments before was on the device.
func (j *Journal) write(c *chunk) (written bool, err error) {
	if c.fresh {
		var b [headerSize]byte
		h := header{number: c.segment.number, store: j.options.StoreID, epoch: c.segment.epoch, first: c.segment.first,
			segment: c.segment.size}
		h.put(b[:])
		if _, err := c.file.WriteAt(b[:], 0); err != nil {
			return false, err
		}
		if err := c.file.Sync(); err != nil {
			return true, err
		}
	}
	if c.from == c.to {
		return false, nil
	}
	if n, err := c.file.WriteAt(j.group.buffer[c.from:c.to], c.offset); err != nil {
		return n > 0, err
	}
	return true, c.file.Sync()
}

// settle makes what was flushed visible.
func (j *Journal) settle() {
	g := &j.group
	j.mu.Lock()
	for _, c := range g.chunks {
		if !c.fresh {
			continue
		}
		if n := len(j.segments); n > 0 {
			j.segments[n-1].sealed = true
		}
		j.segments = append(j.segments, c.segment)
	}
	j.end = Position{Index: g.index, Segment: g.segment.number, Offset: g.offset}
	j.epoch = g.segment.epoch
	j.mu.Unlock()
	began := len(g.taken) > 0
	for _, p := range g.taken {
		if g.reading != nil {
			j.files.giveBack(g.reading)
		}
		g.reading = j.files.adopt(p.number, p.file)
	}
	g.flushed = g.tail
	g.clear()
	if began {
		j.preparer.ahead()
	}
}
