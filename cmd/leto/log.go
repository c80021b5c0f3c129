package main

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/letomq/leto/cmd/leto/config"
)

// newLogger writes to out: one JSON object per line, or text, coloured on a terminal.
// How much is logged, level says, also later.
func newLogger(o config.Log, level *logLevel, out io.Writer) zerolog.Logger {
	if o.Format == "text" {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.RFC3339, NoColor: !terminal(out) || os.Getenv("NO_COLOR") != ""}
	}
	level.set(o.Level)
	return zerolog.New(zerolog.SyncWriter(out)).Level(zerolog.TraceLevel).Sample(level).With().Timestamp().Logger()
}

// logLevel is the least level that is logged; it may change while everybody logs.
type logLevel struct{ least atomic.Int32 }

func (l *logLevel) set(to config.LogLevel) {
	level, err := zerolog.ParseLevel(string(to))
	if to == "off" {
		level, err = zerolog.Disabled, nil
	}
	if err != nil {
		level = zerolog.InfoLevel // can't be: the configuration was validated
	}
	l.least.Store(int32(level))
}

// Sample lets what is at the level or above through.
func (l *logLevel) Sample(level zerolog.Level) bool { return int32(level) >= l.least.Load() }

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
