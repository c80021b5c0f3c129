// Package journal is the write-ahead log of the durable store: records with the bodies of messages in preallocated
// segments, in the form that store/FORMAT.md describes.
//
// One goroutine, the committer, appends: Append puts records into a buffer, Flush writes them with one write and one
// flush, and nothing of the next group is written before that. So only the group written last can be torn by a crash,
// and Open cuts it off; whatever else doesn't read well is corruption, which Open reports and leaves alone. Bodies
// stay where they were appended: ReadAt reads them from any goroutine, and Free gives a segment back when nothing in
// it is needed any more.
//
//	j, err := journal.Open(journal.Options{FS: journal.OS(folder), Dir: "journal", StoreID: id, From: position})
//	err = j.Replay(position, apply)       // what was flushed, in order
//	err = j.Begin(epoch)                  // from here on there is something to append to
//	part, err := j.Append(journal.KindPart, body)
//	window, err := j.Append(journal.KindWindow, facts)
//	err = j.Flush()                       // holds now, or ErrFull: nothing of it does, or ErrFailed: the journal has ended
package journal
