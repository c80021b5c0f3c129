// Package codec turns bytes into AMQP 1.0 values and values into bytes: the
// type system (part 1 of the specification), frames, performatives and their
// parts (2.3, 2.7, 2.8), the sections of a message (3.2), outcomes and termini
// (3.4, 3.5), and the types of transactions (4.5) and SASL (5.3).
//
// It knows what is well formed and what is not, and nothing of what may be
// said when: states, windows, credit, negotiated limits and settlement are the
// protocol machine's. It does no input or output, starts nothing, reads no
// clock and keeps no state: every function depends on its arguments only and
// may be called from any goroutine.
//
// # Reading
//
// A frame's body is read by its descriptor:
//
//	h, err := codec.ReadFrameHeader(b) // then wait for h.Size octets
//	code, fields, err := codec.ReadDescriptor(b[h.BodyOffset():h.Size])
//	switch code {
//	case codec.CodeTransfer:
//		payload, err := transfer.Decode(fields)
//
// Decode resets its receiver, fills in the specification's defaults and returns
// what follows: the payload of a transfer; for every other performative the
// caller decides whether octets may follow. After an error the receiver's
// content is void.
//
// What was decoded has octets of its own, except where a field's comment says
// that it aliases the input: Transfer.DeliveryTag, DeliveryState.TxnID,
// Outcome.Annotations, Outcome.TxnID, Attach.Unsettled, the results of Split
// and of PropertiesField. Whoever keeps one of these beyond the life of the
// buffer copies it.
//
// # Writing
//
// Append methods append to a slice and return it, as append does. A
// performative is written with all its fields, absent ones as null, and each
// value in its narrowest form. A frame is
//
//	start := len(b)
//	b = codec.BeginFrame(b, codec.FrameAMQP, channel)
//	b = transfer.Append(b)
//	b = append(b, payload...)
//	codec.EndFrame(b, start)
//
// Append cannot fail, so a map of a performative that holds a Go type without
// encoding is a fault of the program and panics; whatever was decoded can be
// written.
//
// # Limits
//
// Sizes and counts that a peer declares are compared with the octets that are
// there before anything is allocated. Beyond that MaxDepth, MaxElements and
// MaxZeroWidth hold for whatever is decoded, Skip and Split look only at the
// outermost sizes, and every function takes time linear in the octets it is
// given. Transfer, Flow and Disposition, Header, Split and PropertiesField
// allocate nothing.
package codec
