package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

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

// maxAnswer bounds what is read of an answer: enough for a million queues.
const maxAnswer = 512 << 20

// adminGet reads JSON from the broker's HTTP API.
func adminGet(ctx context.Context, base, path string, into any) error {
	target, err := url.Parse(base)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return usageError("--admin-url: %q is not http://HOST:PORT", base)
	}
	target = target.JoinPath(path)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return usageError("--admin-url: %v", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return dialError(target.Redacted(), err)
	}
	defer answer.Body.Close()
	body := io.LimitReader(answer.Body, maxAnswer)
	if answer.StatusCode != http.StatusOK {
		return statusError(target.Redacted(), answer.StatusCode, body)
	}
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return exitWith(exitFailed, "answer of %s: %w", target.Redacted(), err)
	}
	return nil
}

// statusError turns an HTTP status and its problem details into an exit code and a line.
func statusError(what string, status int, body io.Reader) error {
	code := exitFailed
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = exitForbidden
	case http.StatusNotFound:
		code = exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		code = exitConflict
	}
	var told struct{ Detail string }
	detail := http.StatusText(status)
	if json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&told) == nil && told.Detail != "" {
		detail = told.Detail
	}
	return exitWith(code, "%s: %d %s", what, status, strings.TrimSpace(oneLine(detail)))
}
