package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/letomq/leto/cmd/leto/config"
	"github.com/letomq/leto/engine"
)

// live are the keys that a reload changes in a broker that runs; all others take a restart. So does auth.users-file,
// unless it names a file before and after: what it says of who may connect is in the listeners.
var live = []string{"log.level", "address-settings", "addresses"}

// maxComplaints bounds how many lines, or names, of one kind a reload logs.
const maxComplaints = 20

// read reads the configuration and the users file that it names: all that a start or a reload goes by. An error says
// where in them.
func (n *node) read() (config.Options, *users, error) {
	opts, err := config.Load(n.from)
	if err != nil || opts.Auth.UsersFile == "" {
		return opts, nil, err
	}
	known, err := readUsers(opts.Auth.UsersFile)
	return opts, known, err
}

// unfit finds what the configuration alone doesn't show: names that no address may have and, in a broker that runs,
// addresses that are there and route otherwise.
func (n *node) unfit(opts *config.Options) []config.Problem {
	var found []config.Problem
	for i, a := range opts.Addresses {
		key := fmt.Sprintf("addresses.%d", i)
		bad := func(below, text string) { found = append(found, config.Problem{Key: key + below, Text: text}) }
		if err := (engine.QueueSpec{Address: a.Name}).Check(); err != nil {
			bad(".name", err.Error())
			continue
		}
		for j, q := range a.Queues {
			if err := (engine.QueueSpec{Address: a.Name, Queue: q.Name}).Check(); err != nil {
				bad(fmt.Sprintf(".queues.%d.name", j), err.Error())
			}
		}
		if n.broker == nil || a.Routing == "" {
			continue
		}
		if there, _, err := n.broker.Address(a.Name); err == nil && there.Routing != routing(a.Routing) {
			bad(".routing", fmt.Sprintf("address %s is %s: delete it first", a.Name, there.Routing))
		}
	}
	return found
}

// reconfigure reads the configuration and the users again, and takes over what may change while the broker runs: all of
// it, or nothing when something is wrong. What is declared no more stays.
func (n *node) reconfigure() {
	notify("RELOADING=1")
	opts, known, err := n.read()
	if err == nil {
		err = n.redeclare(opts)
	}
	if err != nil {
		n.reloaded.failed.Store(true)
		n.complain(err)
		notify("READY=1\nSTATUS=the last reload failed: see the log")
		return
	}
	n.level.set(opts.Log.Level)
	restart := restartKeys("", reflect.ValueOf(n.opts), reflect.ValueOf(opts))
	if n.users.Load() != nil && known != nil {
		n.users.Store(known)
		n.opts.Auth.UsersFile = opts.Auth.UsersFile
		restart = slices.DeleteFunc(restart, func(key string) bool { return key == "auth.users-file" })
	}
	left := undeclared(n.opts.Addresses, opts.Addresses)
	n.opts.Log.Level, n.opts.AddressSettings, n.opts.Addresses = opts.Log.Level, opts.AddressSettings, opts.Addresses
	n.reloaded.at(time.Now())
	n.log.Info().Msg("SIGHUP: configuration reloaded")
	n.warnOfCircles(opts.AddressSettings)
	if len(restart) > 0 {
		n.log.Warn().Strs("keys", restart).Msg("SIGHUP: these keys have changed and take effect with the next start")
	}
	if len(left) > 0 {
		n.log.Info().Strs("names", left[:min(len(left), maxComplaints)]).Int("all", len(left)).Msg("SIGHUP: these are declared no more and stay: leto queue rm and leto address rm delete them")
	}
	notify("READY=1\nSTATUS=configuration reloaded")
}

// redeclare puts address settings in force and makes what is declared and isn't there; or, when that can't be, leaves
// everything as it was.
func (n *node) redeclare(opts config.Options) error {
	n.broker.Reload(settingsOf(opts.AddressSettings)) // first: it says how new addresses route
	made, err := n.createAll(opts.Addresses)
	if err == nil {
		return nil
	}
	n.broker.Reload(settingsOf(n.opts.AddressSettings))
	for _, m := range made { // who uses one already keeps it
		_ = n.broker.DeleteIf(m.Address, m.Queue, engine.Condition{Empty: true, Unused: true})
	}
	return err
}

// createAll makes what of these isn't there, and returns what it has made, also with an error: a queue, or without its
// name an address with all that is behind it.
func (n *node) createAll(addresses []config.Address) (made []engine.QueueSpec, err error) {
	for _, a := range addresses {
		_, _, missing := n.broker.Address(a.Name)
		for _, spec := range specs(a) {
			created, err := n.broker.Create(spec)
			switch {
			case missing != nil:
				made, missing = append(made, engine.QueueSpec{Address: a.Name}), nil
			case created:
				made = append(made, engine.QueueSpec{Address: a.Name, Queue: cmp.Or(spec.Queue, a.Name)})
			}
			if err != nil {
				return made, fmt.Errorf("address %s of the configuration: %w", a.Name, err)
			}
		}
	}
	if len(made) == 0 { // then a store that has failed is no reason to leave all else as it is
		return nil, nil
	}
	return made, n.broker.Sync()
}

// complain logs why a configuration isn't taken over, a line for each thing that is wrong.
func (n *node) complain(err error) {
	var several config.Errors
	if !errors.As(err, &several) {
		n.log.Error().Err(err).Msg("SIGHUP: the configuration can't be used, and the one that was read before stays")
		return
	}
	for i, e := range several {
		if i == maxComplaints {
			n.log.Error().Int("errors", len(several)-i).Msg("SIGHUP: there are more errors: leto serve --check lists them all")
			return
		}
		n.log.Error().Err(e).Msg("SIGHUP: the configuration can't be used, and the one that was read before stays")
	}
}

// restartKeys returns the keys below path whose values differ, of those that aren't live.
func restartKeys(path string, a, b reflect.Value) []string {
	var keys []string
	for i := range a.NumField() {
		key := a.Type().Field(i).Tag.Get("key")
		if path != "" {
			key = path + "." + key
		}
		switch {
		case slices.Contains(live, key):
		case a.Field(i).Kind() == reflect.Struct:
			keys = append(keys, restartKeys(key, a.Field(i), b.Field(i))...)
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}

// undeclared returns the addresses and queues that are among the first and not among the second.
func undeclared(before, after []config.Address) []string {
	declared := map[string]bool{}
	each := func(all []config.Address, f func(string)) {
		for _, a := range all {
			f(a.Name)
			for _, q := range a.Queues {
				f(a.Name + "::" + q.Name)
			}
		}
	}
	each(after, func(name string) { declared[name] = true })
	var left []string
	each(before, func(name string) {
		if !declared[name] {
			left = append(left, name)
		}
	})
	return left
}

// reloads is what has become of attempts to read the configuration. Everybody may look at it.
type reloads struct {
	failed atomic.Bool  // the last one
	taken  atomic.Int64 // Unix milliseconds of the last that didn't fail
}

func (r *reloads) at(now time.Time) {
	r.failed.Store(false)
	r.taken.Store(now.UnixMilli())
}

// last says whether the last attempt went well, and when one did so last.
func (r *reloads) last() (ok bool, at time.Time) {
	return !r.failed.Load(), time.UnixMilli(r.taken.Load())
}
