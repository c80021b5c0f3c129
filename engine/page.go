package engine

// page is what has been read of a queue and priority, in ascending order of number.
type page struct {
	entries []Stored
	whole   bool // there is no more
}

// pageOf returns what a Store has returned for that many entries and bytes.
func pageOf(found []Stored, n, bytes int) page {
	for i := range found {
		bytes -= found[i].Message.Size()
	}
	return page{found, len(found) < n && bytes > 0}
}

// with returns both pages as one. It ends where one of them does that isn't whole. What both have is in it once.
func (p page) with(o page) page {
	if len(o.entries) == 0 && o.whole {
		return p
	}
	if len(p.entries) == 0 && p.whole {
		return o
	}
	last := ^uint64(0)
	for _, part := range [2]page{p, o} {
		if n := len(part.entries); !part.whole && n > 0 {
			last = min(last, part.entries[n-1].Number)
		}
	}
	merged := make([]Stored, 0, len(p.entries)+len(o.entries))
	a, b := p.entries, o.entries
	for len(a) > 0 || len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Number < a[0].Number {
			from = &b
		} else if len(b) > 0 && b[0].Number == a[0].Number {
			b = b[1:]
		}
		if (*from)[0].Number > last {
			break
		}
		merged = append(merged, (*from)[0])
		*from = (*from)[1:]
	}
	return page{merged, p.whole && o.whole}
}

// trim returns the page with no more than so many entries, and none behind those that have so many bytes.
func (p page) trim(n, bytes int) page {
	for i := range p.entries {
		if i == n || i > 0 && bytes <= 0 {
			return page{p.entries[:i], false}
		}
		bytes -= p.entries[i].Message.Size()
	}
	return p
}
