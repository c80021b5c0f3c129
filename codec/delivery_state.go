package codec

// DeliveryState is the state of a delivery at one end [3.4], alone or as part
// of a transaction.
type DeliveryState struct {
	// Transactional: the outcome, if any, takes effect when the transaction
	// TxnID commits [4.5.6]. TxnID aliases what was decoded.
	Transactional bool
	TxnID         []byte
	// Outcome is the state. A transactional state without outcome has the
	// kind StateNone.
	Outcome
}

// Decode reads a state with its descriptor, or null. Byte fields alias b.
func (s *DeliveryState) Decode(b []byte) (rest []byte, err error) {
	*s = DeliveryState{}
	if len(b) > 0 && b[0] == formatNull {
		return b[1:], nil
	}
	return s.decode(b)
}

// decode is Decode for a state that is not null, into a zero s.
func (s *DeliveryState) decode(b []byte) (rest []byte, err error) {
	if len(b) > 3 && b[0] == formatDescribed && b[1] == formatSmallUlong && b[3] == formatList0 {
		switch Code(b[2]) {
		case CodeAccepted:
			s.Kind = StateAccepted
			return b[4:], nil
		case CodeReleased:
			s.Kind = StateReleased
			return b[4:], nil
		}
	}
	code, content, err := describedAs(b)
	if err != nil {
		return nil, err
	}
	if code != CodeTransactionalState {
		return s.decodeAs(code, content)
	}
	s.Transactional = true
	var f fields
	rest = f.begin(content, "transactional-state", 2)
	s.TxnID = f.needBinary("txn-id")
	f.outcome("outcome", &s.Outcome)
	return rest, f.end()
}

// Append writes the state with its descriptor, null for StateNone.
func (s *DeliveryState) Append(dst []byte) []byte {
	if !s.Transactional {
		return s.Outcome.Append(dst)
	}
	dst, at := beginComposite(dst, CodeTransactionalState, 2)
	dst = appendBinary(dst, s.TxnID)
	dst = s.Outcome.Append(dst)
	return endComposite(dst, at)
}

// state reads a field that holds a delivery state into a zero s.
func (f *fields) state(field string, s *DeliveryState) {
	if f.left == 0 || f.skipNull() {
		return
	}
	f.left--
	rest, err := s.decode(f.b[f.i:])
	if err != nil {
		f.failWith(field, err)
		return
	}
	f.skipTo(rest)
}
