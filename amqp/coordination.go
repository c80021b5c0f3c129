package amqp

import (
	"errors"

	"github.com/letomq/leto/codec"
)

// Coordination is what a controller asks of a coordinator: the body of a
// message on a control link [4.3]. One of the two is set.
type Coordination struct {
	Declare   *codec.Declare
	Discharge *codec.Discharge
}

// maxTxnID is how long a transaction-id may be [4.5.4].
const maxTxnID = 32

// ReadCoordination reads a whole message from a control link: one amqp-value
// with a declare or a discharge. Its other sections say nothing [4.2].
func ReadCoordination(message []byte) (Coordination, *Error) {
	s, err := codec.Split(message)
	if err != nil {
		return Coordination{}, Errorf(ConditionDecodeError, "message to the coordinator: %v", err)
	}
	if s.Body == nil {
		return Coordination{}, Errorf(ConditionDecodeError, "message to the coordinator: it has no body")
	}
	code, value, err := codec.ReadDescriptor(s.Body)
	if err != nil || code != codec.CodeAmqpValue {
		return Coordination{}, Errorf(ConditionDecodeError, "message to the coordinator: its body is no amqp-value")
	}
	code, fields, err := codec.ReadDescriptor(value)
	var r Coordination
	switch {
	case err != nil:
	case code == codec.CodeDeclare:
		r.Declare = new(codec.Declare)
		_, err = r.Declare.Decode(fields)
	case code == codec.CodeDischarge:
		r.Discharge = new(codec.Discharge)
		if _, err = r.Discharge.Decode(fields); err == nil && len(r.Discharge.TxnID) > maxTxnID {
			err = errors.New("txn-id is too long")
		}
	default:
		return Coordination{}, Errorf(ConditionNotImplemented, "message to the coordinator: it is neither declare nor discharge")
	}
	if err != nil {
		return Coordination{}, Errorf(ConditionDecodeError, "message to the coordinator: %v", err)
	}
	return r, nil
}

// Append writes the message.
func (r *Coordination) Append(dst []byte) []byte {
	dst = append(dst, 0x00, 0x53, byte(codec.CodeAmqpValue))
	if r.Declare != nil {
		return r.Declare.Append(dst)
	}
	return r.Discharge.Append(dst)
}
