package server

import (
	"errors"

	"github.com/letomq/leto/amqp"
	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
)

var conditions = []struct {
	err       error
	condition codec.Symbol
}{
	{engine.ErrNotFound, amqp.ConditionNotFound},
	{engine.ErrNotAllowed, amqp.ConditionNotAllowed},
	{engine.ErrLimit, amqp.ConditionResourceLimitExceeded},
	{engine.ErrInvalid, amqp.ConditionInvalidField},
	{engine.ErrDeleted, amqp.ConditionResourceDeleted},
	{engine.ErrLocked, amqp.ConditionResourceLocked},
	{engine.ErrStolen, amqp.ConditionStolen},
	{engine.ErrClosed, amqp.ConditionConnectionForced},
}

// toWire is what a peer is told of the engine's refusal.
func toWire(err error) *amqp.Error {
	for _, c := range conditions {
		if errors.Is(err, c.err) {
			return amqp.Errorf(c.condition, "%v", err)
		}
	}
	return amqp.Errorf(amqp.ConditionInternalError, "%v", err)
}
