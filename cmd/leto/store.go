package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/store"
	"github.com/letomq/leto/store/journal"
)

func storeCommand() *cli.Command {
	data := &cli.StringFlag{Name: "data", Value: "leto-data", Usage: "folder `DIR` of the store (node.data)"}
	return &cli.Command{
		Name:  "store",
		Usage: "look after what a broker has stored",
		Subcommands: []*cli.Command{
			{
				Name:        "check",
				Usage:       "read everything that is stored and say what is wrong",
				Description: "Brings the index up to date first. Exits with 1 when something is wrong.",
				Flags:       []cli.Flag{data, jsonFlag()},
				Action:      checkStore,
			},
			{
				Name:        "export",
				Usage:       "write everything that is stored to a file or standard output",
				ArgsUsage:   "[FILE|-]",
				Description: "The export outlives versions of the store's format. It is the store at one moment: of a broker that is stopped, or with --online of one that runs and goes on.",
				Flags: []cli.Flag{data, adminURLFlag(), yesFlag(), &cli.BoolFlag{
					Name: "online", Usage: "ask the broker at --admin-url instead of opening its folder",
				}},
				Action: exportStore,
			},
			{
				Name:        "import",
				Usage:       "make a new store of an export",
				ArgsUsage:   "[FILE|-]",
				Description: "The folder must not hold a store.",
				Flags:       []cli.Flag{data},
				Action:      importStore,
			},
		},
	}
}

func checkStore(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	dir, err := storeFolder(c)
	if err != nil {
		return err
	}
	r, err := store.Check(store.Options{Dir: dir})
	if err != nil {
		return storeError(dir, err)
	}
	if c.Bool("json") {
		problems := r.Problems
		if problems == nil {
			problems = []string{}
		}
		err = json.NewEncoder(c.App.Writer).Encode([]any{map[string]any{
			"segments": r.Segments, "windows": r.Windows, "queues": r.Queues, "messages": r.Entries, "bytes": r.Bytes,
			"problems": problems, "more_problems": r.More,
		}})
	} else {
		_, err = fmt.Fprintf(c.App.Writer, "%d queues, %d messages of %d bytes in %d segments\n", r.Queues, r.Entries, r.Bytes, r.Segments)
	}
	if err != nil {
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintln(c.App.ErrWriter, p)
	}
	if n := len(r.Problems) + r.More; n > 0 {
		return exitWith(exitFailed, "store %s: %d problems", dir, n)
	}
	return nil
}

func exportStore(c *cli.Context) error {
	if err := confirmReplacing(c, c.Args().First()); err != nil {
		return err
	}
	if c.Bool("online") {
		if c.IsSet("data") {
			return usageError("--online asks the broker, --data opens its folder: use one of them")
		}
		return exportTo(c, func(w io.Writer) error {
			return adminExport(c.Context, c.String("admin-url"), w)
		})
	}
	dir, err := storeFolder(c)
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{Dir: dir, Alarm: func(what string) { fmt.Fprintln(c.App.ErrWriter, what) }})
	if err != nil {
		return storeError(dir, err)
	}
	err = exportTo(c, s.Export)
	return storeError(dir, errors.Join(err, s.Close()))
}

// confirmReplacing asks before a file that is there gives way to another.
func confirmReplacing(c *cli.Context, name string) error {
	switch there, err := os.Stat(name); {
	case name == "-" || err != nil:
		return nil
	case !there.Mode().IsRegular():
		return exitWith(exitConflict, "export: %s is there and is no file", name)
	}
	return confirm(c, "replace %s", name)
}

// exportTo writes to a file that appears, in the place of another one if that is wanted, when it is whole, or to standard
// output.
func exportTo(c *cli.Context, export func(io.Writer) error) error {
	name := c.Args().First()
	if name == "" || name == "-" {
		return export(c.App.Writer)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".leto-export-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	left := store.LeftOut(0)
	if err := export(f); err != nil && !errors.As(err, &left) {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil || left == 0 {
		return err
	}
	return left
}

func importStore(c *cli.Context) error {
	dir := c.String("data")
	var in io.Reader = c.App.Reader
	if name := c.Args().First(); name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return exitWith(exitNotFound, "import: %v", err)
		}
		defer f.Close()
		in = f
	}
	// What is there may be what is left of a store, or somebody else's: it must neither be used nor removed.
	parts := []string{"format", "position", "lock", "journal", "index"}
	for _, part := range parts {
		if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			return exitWith(exitConflict, "%s holds a store already, or a part of one, %s: import into a new folder", dir, part)
		}
	}
	err := store.Import(store.Options{Dir: dir}, in)
	if err != nil && !errors.Is(err, store.ErrLocked) { // else another import is under way there
		// Half a store is none: the next try must not find it.
		for _, part := range parts {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, part)))
		}
	}
	return storeError(dir, err)
}

// storeFolder returns the folder of a store that is there: looking must not make one.
func storeFolder(c *cli.Context) (string, error) {
	dir := c.String("data")
	if _, err := os.Stat(filepath.Join(dir, "format")); err != nil {
		return "", exitWith(exitNotFound, "%s holds no store: name its folder with --data DIR", dir)
	}
	return dir, nil
}

// storeError says what an operator can do about a store that doesn't open.
func storeError(dir string, err error) error {
	var corrupt *journal.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLocked):
		return exitWith(exitConflict, "%s is in use by another process: stop the broker, or choose another folder with --data DIR", dir)
	case errors.As(err, &corrupt):
		return exitWith(exitFailed, "%s is damaged: %v; nothing was changed: bring the folder back from a backup", dir, err)
	}
	return exitWith(exitFailed, "%s: %v", dir, err)
}
