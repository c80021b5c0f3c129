//go:build linux

package powerloss

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// work is what a store does besides taking batches.
type work int

const (
	opening    work = iota // Open has not returned
	flush                  // a memtable of the index becomes a table: from the next one's beginning until it is gone
	compaction             // tables become other tables: from the first new one until an old one is gone
	checkpoint             // from the listing of the index's files until the position's name is flushed
	relocation             // from the reading of a segment until the position behind it, or 20 ms without reading
	recycling              // the journal's files get names: until these are flushed
	works
)

var workNames = [works]string{"opening", "flush", "compaction", "checkpoint", "relocation", "recycling"}

// happening is something that a watcher sees.
type happening int

const (
	anything happening = iota
	openingBegins
	memtableMade
	memtableGone
	tableMade
	compactionBegins
	tableGone
	checkpointBegins
	positionMade
	positionNamed
	segmentFilled
	segmentNamed
	segmentGone
	segmentRead
	happenings
)

var happeningNames = [happenings]string{
	"a random moment", "the start", "a new memtable", "a memtable that goes", "a new table",
	"a compaction's first table", "a table that goes", "a checkpoint's begin",
	"position.tmp", "the position's new name", "a segment being filled", "a segment's new name", "a segment that goes", "a segment being read",
}

// watcher sees from outside what a store does with its files.
type watcher struct {
	file   *os.File
	root   int32
	index  int32
	dir    int32 // of the journal
	folder string
	board  *board

	memtables map[string]bool
	files     map[string]bool // all that there are, below the folder
	flushed   int             // tables of memtables that are still there
	open      [works]bool
	begun     [works]int // how often
	named     bool       // the position has its new name, which isn't flushed yet
	read      time.Time  // when a segment was read last
	buffer    [64 << 10]byte
}

func newWatcher(folder string, b *board) (*watcher, error) {
	w := &watcher{folder: folder, board: b, memtables: map[string]bool{}, files: map[string]bool{}}
	for _, dir := range []string{"index", "journal"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o750); err != nil {
			return nil, err
		}
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w.file = os.NewFile(uintptr(fd), "inotify")
	const names = syscall.IN_CREATE | syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO
	for dir, at := range map[string]*int32{"": &w.root, "index": &w.index, "journal": &w.dir} {
		wd, err := syscall.InotifyAddWatch(fd, filepath.Join(folder, dir), names|syscall.IN_ACCESS|syscall.IN_CLOSE_NOWRITE)
		if err != nil {
			w.file.Close()
			return nil, err
		}
		*at = int32(wd)
		entries, err := os.ReadDir(filepath.Join(folder, dir))
		if err != nil {
			w.file.Close()
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() {
				w.files[filepath.Join(dir, e.Name())] = true
				if filepath.Ext(e.Name()) == ".mem" {
					w.memtables[e.Name()] = true
				}
			}
		}
	}
	w.next(0, func(happening) {}) // what the listing has caused
	w.open, w.begun = [works]bool{}, [works]int{}
	return w, nil
}

func (w *watcher) close() { w.file.Close() }

// next calls f with what has happened since the last call, and waits for it if it has to.
func (w *watcher) next(wait time.Duration, f func(happening)) error {
	if err := w.file.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	for {
		n, err := w.file.Read(w.buffer[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		for b := w.buffer[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			length := binary.NativeEndian.Uint32(b[12:])
			name := strings.TrimRight(string(b[syscall.SizeofInotifyEvent:][:length]), "\x00")
			if h := w.event(int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), name); h != anything {
				f(h)
			}
			b = b[syscall.SizeofInotifyEvent+length:]
		}
		if err := w.file.SetReadDeadline(time.Now()); err != nil { // the rest of what is there
			return err
		}
	}
}

func (w *watcher) begin(k work) {
	if !w.open[k] {
		w.open[k] = true
		w.begun[k]++
	}
}

// event takes note of one event.
func (w *watcher) event(at int32, mask uint32, name string) happening {
	made := mask&(syscall.IN_CREATE|syscall.IN_MOVED_TO) != 0
	gone := mask&(syscall.IN_DELETE|syscall.IN_MOVED_FROM) != 0
	dir := mask&syscall.IN_ISDIR != 0 && name == ""
	if !dir {
		w.list(at, name, made, gone)
	}
	switch at {
	case w.index:
		return w.indexEvent(mask, name, made, gone, dir)
	case w.dir:
		return w.journalEvent(mask, name, made, gone, dir)
	case w.root:
		switch {
		case made && name == "position.tmp":
			return positionMade
		case mask&syscall.IN_MOVED_TO != 0 && name == "position":
			w.named = true
			w.open[relocation] = false
			return positionNamed
		case dir && mask&syscall.IN_CLOSE_NOWRITE != 0 && w.named:
			w.named, w.open[checkpoint] = false, false
		}
	}
	return anything
}

func (w *watcher) list(at int32, name string, made, gone bool) {
	folder := map[int32]string{w.index: "index", w.dir: "journal"}[at]
	if made {
		w.files[filepath.Join(folder, name)] = true
	} else if gone {
		delete(w.files, filepath.Join(folder, name))
	}
}

func (w *watcher) indexEvent(mask uint32, name string, made, gone, dir bool) happening {
	if dir {
		if mask&syscall.IN_ACCESS != 0 && !w.open[checkpoint] && w.board.open.Load() == 1 {
			w.begin(checkpoint)
			return checkpointBegins
		}
		return anything
	}
	switch ext := filepath.Ext(name); {
	case ext == ".mem" && made:
		w.memtables[name] = true
		if len(w.memtables) > 1 {
			w.begin(flush)
		}
		return memtableMade
	case ext == ".mem" && gone:
		delete(w.memtables, name)
		w.flushed = max(0, w.flushed-1)
		w.open[flush] = len(w.memtables) > 1
		return memtableGone
	case ext == ".sst" && made:
		if w.flushed < len(w.memtables)-1 {
			w.flushed++
			return tableMade
		}
		if !w.open[compaction] {
			w.begin(compaction)
			return compactionBegins
		}
	case ext == ".sst" && gone:
		w.open[compaction] = false
		return tableGone
	}
	return anything
}

func (w *watcher) journalEvent(mask uint32, name string, made, gone, dir bool) happening {
	switch {
	case dir:
		if mask&syscall.IN_CLOSE_NOWRITE != 0 {
			w.open[recycling] = false
		}
	case made || gone:
		w.begin(recycling)
		switch {
		case mask&syscall.IN_CREATE != 0:
			return segmentFilled
		case mask&syscall.IN_DELETE != 0, strings.HasPrefix(name, "spare") && made:
			return segmentGone
		case made:
			return segmentNamed
		}
	case mask&syscall.IN_ACCESS != 0 && filepath.Ext(name) == ".seg" && w.board.open.Load() == 1:
		w.read = time.Now()
		w.begin(relocation)
		return segmentRead
	}
	return anything
}

// now says what is under way, and how often it has begun.
func (w *watcher) now() (open [works]bool, begun [works]int) {
	if time.Since(w.read) > 20*time.Millisecond {
		w.open[relocation] = false
	}
	open = w.open
	open[opening] = w.board.open.Load() == 0
	return open, w.begun
}
