package journal

import "sync"

// prepared is a file that has the name of a segment, and isn't one yet: its header isn't written.
type prepared struct {
	number uint64
	file   File
}

// preparer has the next segment ready ahead of the committer's need. Its goroutine makes one when the last was taken,
// or when somebody waits.
type preparer struct {
	folder *folder
	fail   func(error) error // ends the journal
	inline bool              // tests: no goroutine, the taker does the work

	mu       sync.Mutex
	changed  sync.Cond
	ready    []prepared
	next     uint64 // number of the segment that is made next
	asked    uint64 // requests so far
	answered uint64 // of these, how many an attempt has answered that began after them
	err      error  // of the last attempt
	waiting  int    // takers that wait
	stopped  bool
	done     sync.WaitGroup
}

func (p *preparer) start() {
	p.changed.L = &p.mu
	if !p.inline {
		p.done.Go(p.run)
	}
}

func (p *preparer) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for p.answered == p.asked && !p.stopped {
			p.changed.Wait()
		}
		if p.stopped {
			return
		}
		p.make()
	}
}

// make answers all requests there are with one attempt. p.mu is held, but not while the file is made.
func (p *preparer) make() {
	asked, number := p.asked, p.next
	p.mu.Unlock()
	file, err := p.folder.provide(number, p.hurried)
	if err != nil && !isFull(err) {
		err = p.fail(err)
	}
	p.mu.Lock()
	if p.err = err; err == nil {
		p.ready = append(p.ready, prepared{number, file})
		p.next++
	}
	p.answered = asked
	p.changed.Broadcast()
}

// hurried says whether a segment should rather be ready soon than be filled.
func (p *preparer) hurried() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0 && !p.inline || p.stopped
}

// take returns the next segment. It waits for one if none is ready.
func (p *preparer) take() (prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) == 0 {
		p.asked++
		mine := p.asked
		if p.inline {
			p.make()
		}
		p.changed.Broadcast()
		p.waiting++
		for len(p.ready) == 0 && p.answered < mine && !p.stopped {
			p.changed.Wait()
		}
		p.waiting--
	}
	switch {
	case p.stopped:
		return prepared{}, ErrClosed
	case len(p.ready) == 0:
		return prepared{}, p.err
	}
	first := p.ready[0]
	p.ready = p.ready[1:]
	return first, nil
}

// giveBack returns segments that were taken last and not begun.
func (p *preparer) giveBack(unused []prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = append(unused, p.ready...)
}

// ahead asks for a segment to be ready. Whether that succeeds matters when it is taken.
func (p *preparer) ahead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) > 0 || p.stopped {
		return
	}
	p.asked++
	if p.inline {
		p.make()
	}
	p.changed.Broadcast()
}

// stop ends the goroutine, waits for it, and returns what is ready.
func (p *preparer) stop() []prepared {
	p.mu.Lock()
	p.stopped = true
	p.changed.Broadcast()
	p.mu.Unlock()
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := p.ready
	p.ready = nil
	return ready
}
