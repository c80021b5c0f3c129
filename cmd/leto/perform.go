package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
)

// perform has the broker carry out a command over messages and says what came of it, on a terminal also meanwhile.
func perform(c *cli.Context, path string, body any, done string) error {
	live := terminal(c.App.ErrWriter)
	last, err := adminPerform(c.Context, c.String("admin-url"), path, body, func(p admin.Progress) {
		if live && !p.Ended {
			fmt.Fprintf(c.App.ErrWriter, "\r%d looked at, %d %s ", p.Looked, p.Done, done)
		}
	})
	if live && last.Looked > 0 {
		fmt.Fprint(c.App.ErrWriter, "\r\x1b[K")
	}
	if err != nil && last.Done == 0 {
		return err
	}
	if c.Bool("json") {
		if e := printIndented(c, []admin.Progress{last}); err == nil {
			err = e
		}
		return err
	}
	skipped := ""
	if last.Skipped > 0 {
		skipped = fmt.Sprintf(", %d left where they were", last.Skipped)
	}
	least := ""
	if !last.Ended { // interrupted: the broker has gone on since it told, and then stopped
		least = "at least "
	}
	if _, e := fmt.Fprintf(c.App.Writer, "%s%d %s%s\n", least, last.Done, done, skipped); err == nil {
		err = e
	}
	return err
}
