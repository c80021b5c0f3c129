package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/Azure/go-amqp"
)

func TestExitCodesOfErrors(t *testing.T) {
	link := func(c amqp.ErrCond) error { return &amqp.LinkError{RemoteErr: &amqp.Error{Condition: c}} }
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("anything"), exitFailed},
		{usageError("x"), exitUsage},
		{fmt.Errorf("around: %w", usageError("x")), exitUsage},
		{amqpError("a", link(amqp.ErrCondNotFound)), exitNotFound},
		{amqpError("a", link(amqp.ErrCondResourceDeleted)), exitNotFound},
		{amqpError("a", link(amqp.ErrCondUnauthorizedAccess)), exitForbidden},
		{amqpError("a", link(amqp.ErrCondResourceLocked)), exitConflict},
		{amqpError("a", link(amqp.ErrCondStolen)), exitConflict},
		{amqpError("a", link(amqp.ErrCondInternalError)), exitFailed},
		{amqpError("a", link("vendor:thing")), exitFailed},
		{amqpError("a", &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondConnectionForced}}), exitConnect},
		{amqpError("a", &amqp.ConnError{}), exitConnect},
		{amqpError("a", fmt.Errorf("x: %w", context.DeadlineExceeded)), exitTimeout},
		{amqpError("a", context.Canceled), exitFailed},
		{dialError("u", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), exitConnect},
		{dialError("u", context.DeadlineExceeded), exitConnect},
		{dialError("u", errors.New("SASL PLAIN auth failed with code 0x01: ")), exitForbidden},
		{dialError("u", errors.New("no supported auth mechanism ([PLAIN])")), exitForbidden},
		{dialError("u", &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess}}), exitForbidden},
		{dialError("u", &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondResourceLimitExceeded}}), exitConnect},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
	if amqpError("a", nil) != nil {
		t.Error("no error became one")
	}
}

func TestPeersTextStaysOneLine(t *testing.T) {
	err := amqpError("address q", &amqp.LinkError{RemoteErr: &amqp.Error{
		Condition: amqp.ErrCondNotFound, Description: "no such\nqueue \t here"}})
	if want := "address q: no such queue here (amqp:not-found)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
