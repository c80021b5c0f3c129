package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"github.com/letomq/leto/admin"
	"github.com/letomq/leto/cmd/leto/config"
)

func queueCommand() *cli.Command {
	return &cli.Command{
		Name:  "queue",
		Usage: "look at queues",
		Subcommands: []*cli.Command{{
			Name:    "ls",
			Aliases: []string{"list"},
			Usage:   "list the queues of a broker",
			Flags:   []cli.Flag{adminURLFlag(), jsonFlag()},
			Action:  listQueues,
		}},
	}
}

func listQueues(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	var queues []admin.Queue
	if err := adminGet(c.Context, c.String("admin-url"), "/api/v1/queues", &queues); err != nil {
		return err
	}
	if c.Bool("json") {
		encoder := json.NewEncoder(c.App.Writer)
		encoder.SetIndent("", "  ")
		return encoder.Encode(queues)
	}
	if len(queues) == 0 {
		_, err := fmt.Fprintln(c.App.ErrWriter, "no queues")
		return err
	}
	_, err := io.WriteString(c.App.Writer, queueTable(queues, terminal(c.App.Writer))+"\n")
	return err
}

// queueTable draws a frame on a terminal and plain columns elsewhere.
func queueTable(queues []admin.Queue, framed bool) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"queue", "address", "routing", "messages", "delivering", "bytes", "consumers", "added", "acknowledged"})
	for _, q := range queues {
		name := q.Name
		if q.Temporary {
			name += " (temporary)"
		}
		size := fmt.Sprint(q.Bytes)
		if framed {
			size = config.Bytes(q.Bytes).String()
		}
		t.AppendRow(table.Row{name, q.Address, q.Routing, q.Messages, q.Delivering, size, q.Consumers, q.Added, q.Acknowledged})
	}
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	if !framed {
		t.Style().Options = table.OptionsNoBordersAndSeparators
		t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	}
	var columns []table.ColumnConfig
	for number := 4; number <= 9; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	if framed {
		return t.Render()
	}
	lines := strings.Split(t.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
