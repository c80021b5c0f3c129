package main

import (
	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/engine"
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
		o.FS = journal.Unflushed(journal.OS(dir))
		n.log.Warn().Msg("store.sync is never: what is accepted is lost when the machine fails")
	}
	var err error
	if n.store, err = store.Open(o); err != nil {
		return storeError(dir, err)
	}
	return nil
}

// openSpill opens what transient messages are kept in that there is no memory for.
func (n *node) openSpill() (engine.Spill, error) {
	s, err := store.OpenSpill(store.SpillOptions{
		Dir:     n.opts.Node.Data,
		Reserve: int64(n.opts.Limits.DiskFree),
		Alarm:   func(text string) { n.log.Error().Msg(text) },
	})
	if err != nil {
		return nil, err
	}
	n.log.Info().Msg("memory is used up by messages that needn't survive: more of them are written to disk")
	return s, nil
}
