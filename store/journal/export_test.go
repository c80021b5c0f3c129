package journal

// Inline lets the one who needs the next segment make it, without a goroutine: operations have a fixed order then.
func Inline(o Options) Options {
	o.inline = true
	return o
}

// Preparing waits until the preparer has answered everything it was asked.
func (j *Journal) Preparing() {
	p := j.preparer
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.answered != p.asked && !p.stopped {
		p.changed.Wait()
	}
}

// OpenFiles returns how many files are open for reading and writing.
func (j *Journal) OpenFiles() int {
	j.files.mu.Lock()
	defer j.files.mu.Unlock()
	return len(j.files.open)
}
