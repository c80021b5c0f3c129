package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/Azure/go-amqp"
)

// Exit codes. Scripts rely on them.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2 // usage or configuration error
	exitConnect   = 3 // cannot connect
	exitForbidden = 4 // authentication or permission refused
	exitNotFound  = 5
	exitConflict  = 6 // exists, in use
	exitTimeout   = 7 // timed out, or fewer messages than asked
	exitRefused   = 9 // the broker rejected or released a message
)

// exitError is an error that knows the exit code of the process.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

func usageError(format string, args ...any) error { return exitWith(exitUsage, format, args...) }

func exitCode(err error) int {
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.code
	}
	return exitFailed
}

// conditionCodes says which exit code an AMQP error condition stands for. Others are plain failures.
var conditionCodes = map[amqp.ErrCond]int{
	amqp.ErrCondNotFound:           exitNotFound,
	amqp.ErrCondResourceDeleted:    exitNotFound,
	amqp.ErrCondUnauthorizedAccess: exitForbidden,
	amqp.ErrCondNotAllowed:         exitForbidden,
	amqp.ErrCondResourceLocked:     exitConflict,
	amqp.ErrCondPreconditionFailed: exitConflict,
	amqp.ErrCondStolen:             exitConflict,
	amqp.ErrCondHandleInUse:        exitConflict,
	amqp.ErrCondConnectionForced:   exitConnect,
	// The client itself holds back what the broker said it wouldn't take.
	amqp.ErrCondMessageSizeExceeded: exitRefused,
}

// amqpError names what failed and gives it the exit code that the peer's condition, or its silence, asks for.
func amqpError(what string, err error) error {
	if err == nil {
		return nil
	}
	if told := (*amqp.Error)(nil); errors.As(err, &told) {
		code, ok := conditionCodes[told.Condition]
		if !ok {
			code = exitFailed
		}
		return exitWith(code, "%s: %s", what, conditionText(told))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return exitWith(exitTimeout, "%s: timed out", what)
	}
	if errors.Is(err, context.Canceled) {
		return exitWith(exitFailed, "%s: interrupted", what)
	}
	if lost := (*amqp.ConnError)(nil); errors.As(err, &lost) {
		return exitWith(exitConnect, "%s: connection lost: %s", what, oneLine(lost.Error()))
	}
	return exitWith(exitFailed, "%s: %s", what, oneLine(err.Error()))
}

// dialError is amqpError for the time before a connection is open, where a failure means that there is none.
func dialError(url string, err error) error {
	what := "cannot connect to " + url
	if told := (*amqp.Error)(nil); errors.As(err, &told) {
		if code := conditionCodes[told.Condition]; code == exitForbidden {
			return exitWith(code, "%s: %s", what, conditionText(told))
		}
		return exitWith(exitConnect, "%s: %s", what, conditionText(told))
	}
	text := err.Error()
	switch network := (*net.OpError)(nil); {
	case strings.Contains(text, "SASL PLAIN auth failed"):
		return exitWith(exitForbidden, "%s: user or password refused", what)
	case strings.Contains(text, "no supported auth mechanism"):
		return exitWith(exitForbidden, "%s: the broker wants a user and password: amqp://USER:PASSWORD@HOST", what)
	case errors.Is(err, context.DeadlineExceeded):
		return exitWith(exitConnect, "%s: no answer in time", what)
	case errors.Is(err, context.Canceled):
		return exitWith(exitFailed, "%s: interrupted", what)
	case errors.As(err, &network) && network.Op == "dial":
		text = strings.TrimPrefix(network.Err.Error(), "connect: ")
	}
	return exitWith(exitConnect, "%s: %s", what, oneLine(text))
}

func conditionText(e *amqp.Error) string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return fmt.Sprintf("%s (%s)", oneLine(e.Description), e.Condition)
}

// oneLine keeps a peer's text from looking like more than one message.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
