package amqp

import (
	"fmt"
	"strings"

	"github.com/letomq/leto/codec"
)

// Error conditions [2.8.15–2.8.18, 3.5, 4.5.8].
const (
	ConditionInternalError         codec.Symbol = "amqp:internal-error"
	ConditionNotFound              codec.Symbol = "amqp:not-found"
	ConditionUnauthorizedAccess    codec.Symbol = "amqp:unauthorized-access"
	ConditionDecodeError           codec.Symbol = "amqp:decode-error"
	ConditionResourceLimitExceeded codec.Symbol = "amqp:resource-limit-exceeded"
	ConditionNotAllowed            codec.Symbol = "amqp:not-allowed"
	ConditionInvalidField          codec.Symbol = "amqp:invalid-field"
	ConditionNotImplemented        codec.Symbol = "amqp:not-implemented"
	ConditionResourceLocked        codec.Symbol = "amqp:resource-locked"
	ConditionPreconditionFailed    codec.Symbol = "amqp:precondition-failed"
	ConditionResourceDeleted       codec.Symbol = "amqp:resource-deleted"
	ConditionIllegalState          codec.Symbol = "amqp:illegal-state"
	ConditionFrameSizeTooSmall     codec.Symbol = "amqp:frame-size-too-small"

	ConditionConnectionForced codec.Symbol = "amqp:connection:forced"
	ConditionFramingError     codec.Symbol = "amqp:connection:framing-error"

	ConditionWindowViolation  codec.Symbol = "amqp:session:window-violation"
	ConditionHandleInUse      codec.Symbol = "amqp:session:handle-in-use"
	ConditionUnattachedHandle codec.Symbol = "amqp:session:unattached-handle"

	ConditionDetachForced          codec.Symbol = "amqp:link:detach-forced"
	ConditionTransferLimitExceeded codec.Symbol = "amqp:link:transfer-limit-exceeded"
	ConditionMessageSizeExceeded   codec.Symbol = "amqp:link:message-size-exceeded"
	ConditionStolen                codec.Symbol = "amqp:link:stolen"

	ConditionUnknownTransaction    codec.Symbol = "amqp:transaction:unknown-id"
	ConditionTransactionRolledBack codec.Symbol = "amqp:transaction:rollback"
	ConditionTransactionTimeout    codec.Symbol = "amqp:transaction:timeout"
)

// Error is why an endpoint was ended: by the peer, or by us over a fault of the peer.
type Error struct {
	Condition   codec.Symbol
	Description string
	Info        codec.Map
}

// Errorf makes an Error with a formatted description.
func Errorf(condition codec.Symbol, format string, args ...any) *Error {
	return &Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return string(e.Condition) + ": " + e.Description
}

// maxDescription is how many bytes of a description are written, so that the
// frame fits the smallest max-frame-size a peer may have.
const maxDescription = 300

// wire returns e as it is written; nil for nil.
func (e *Error) wire() *codec.ErrorInfo {
	if e == nil {
		return nil
	}
	text := strings.ToValidUTF8(e.Description, "?")
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") // not half a character
	}
	return &codec.ErrorInfo{Condition: e.Condition, Description: text, Info: e.Info}
}

// fromWire returns what the peer wrote; nil for nil.
func fromWire(e *codec.ErrorInfo) *Error {
	if e == nil {
		return nil
	}
	return &Error{Condition: e.Condition, Description: e.Description, Info: e.Info}
}
