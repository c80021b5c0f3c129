package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/letomq/leto/cmd/leto/config"
)

// newLogger writes to out: one JSON object per line, or text, coloured on a terminal.
func newLogger(o config.Log, out io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(string(o.Level))
	if o.Level == "off" {
		level, err = zerolog.Disabled, nil
	}
	if err != nil {
		level = zerolog.InfoLevel // can't be: the configuration was validated
	}
	if o.Format == "text" {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.RFC3339, NoColor: !terminal(out) || os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(zerolog.SyncWriter(out)).Level(level).With().Timestamp().Logger()
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
