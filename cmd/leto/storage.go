package main

import (
	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
)

// openStore opens what durable messages are kept in.
func (n *node) openStore() error {
	dir := n.opts.Node.Data
	o := store.Options{
		Dir:      dir,
		ApplyMax: int64(n.opts.Store.ApplyMax),
		Reserve:  int64(n.opts.Limits.DiskFree),
		Alarm:    func(text string) { n.log.Error().Msg(text) },
	}
	if n.opts.Store.Sync == config.SyncNever {
		o.FS = unflushed{journal.OS(dir)}
		n.log.Warn().Msg("store.sync is never: what is accepted is lost when the machine fails")
	}
	var err error
	if n.store, err = store.Open(o); err != nil {
		return storeError(dir, err)
	}
	return nil
}

// unflushed is a file system that leaves flushing to the system.
type unflushed struct{ journal.FS }

func (u unflushed) Open(name string, create bool) (journal.File, error) {
	f, err := u.FS.Open(name, create)
	if err != nil {
		return nil, err
	}
	return unflushedFile{f}, nil
}

func (unflushed) SyncDir(string) error { return nil }

type unflushedFile struct{ journal.File }

func (unflushedFile) Sync() error { return nil }
