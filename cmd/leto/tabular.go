package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"
)

// drawTable draws a frame on a terminal and plain columns elsewhere. Columns, counted from 1, of figures stand to the
// right.
func drawTable(header []string, rows [][]any, figures []int, framed bool) string {
	t := table.NewWriter()
	head := make(table.Row, len(header))
	for i := range header {
		head[i] = header[i]
	}
	t.AppendHeader(head)
	for _, row := range rows {
		t.AppendRow(table.Row(row))
	}
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	if !framed {
		t.Style().Options = table.OptionsNoBordersAndSeparators
		t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	}
	var columns []table.ColumnConfig
	for _, number := range slices.Sorted(slices.Values(figures)) {
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

// printIndented writes JSON for people and scripts.
func printIndented(c *cli.Context, v any) error {
	encoder := json.NewEncoder(c.App.Writer)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printTable writes a table and ends its line.
func printTable(c *cli.Context, header []string, rows [][]any, figures ...int) error {
	_, err := io.WriteString(c.App.Writer, drawTable(header, rows, figures, terminal(c.App.Writer))+"\n")
	return err
}
