package wire

// The performatives a test client sends, each as a whole frame on channel 0.

// Open begins a connection; maxFrame is the largest frame in bytes that it takes.
func Open(container string, maxFrame uint32) []byte {
	return NewFrame(0, 0, Described(CodeOpen, List(String(container), Null(), Uint(maxFrame))), nil)
}

// Begin begins the only session, with an incoming window that never runs out.
func Begin() []byte {
	return NewFrame(0, 0, Described(CodeBegin, List(Null(), Uint(0), Uint(1<<31-1), Uint(1<<31-1))), nil)
}

// AttachSender attaches a sending link that settles nothing in advance.
func AttachSender(handle uint32, name, address string) []byte {
	return NewFrame(0, 0, Described(CodeAttach, List(String(name), Uint(handle), Bool(false),
		Ubyte(0), Ubyte(0), Described(0x28, List(Null())), Described(0x29, List(String(address))),
		Null(), Null(), Uint(0))), nil)
}

// AttachReceiver attaches a receiving link.
func AttachReceiver(handle uint32, name, address string) []byte {
	return NewFrame(0, 0, Described(CodeAttach, List(String(name), Uint(handle), Bool(true),
		Ubyte(0), Ubyte(0), Described(0x28, List(String(address))), Described(0x29, List(Null())))), nil)
}

// Flow grants credit to the sender of a link that has delivered count deliveries.
func Flow(handle, count, credit uint32) []byte {
	return NewFrame(0, 0, Described(CodeFlow, List(Uint(0), Uint(1<<31-1), Uint(0), Uint(1<<31-1),
		Uint(handle), Uint(count), Uint(credit))), nil)
}

// Withdraw takes back all credit of a link that has delivered count deliveries, by a
// drain or by a flow that asks for an answer.
func Withdraw(handle, count uint32, drain bool) []byte {
	return NewFrame(0, 0, Described(CodeFlow, List(Uint(0), Uint(1<<31-1), Uint(0), Uint(1<<31-1),
		Uint(handle), Uint(count), Uint(0), Null(), Bool(drain), Bool(!drain))), nil)
}

// Transfer begins delivery id, whose tag is its number; more says that payload goes on.
func Transfer(handle, id uint32, more bool, payload []byte) []byte {
	return NewFrame(0, 0, Described(CodeTransfer, List(Uint(handle), Uint(id), Binary(Uint(id)[1:]),
		Uint(0), Bool(false), Bool(more))), payload)
}

// AttachControl attaches a sending link to the coordinator of transactions.
func AttachControl(handle uint32, name string) []byte {
	return NewFrame(0, 0, Described(CodeAttach, List(String(name), Uint(handle), Bool(false),
		Ubyte(0), Ubyte(0), Described(0x28, List(Null())), Described(CodeCoordinator, List(Null())),
		Null(), Null(), Uint(0))), nil)
}

// Declare is the message that asks a coordinator for a transaction.
func Declare() []byte { return Described(SectionValue, Described(CodeDeclare, List(Null()))) }

// Discharge is the message that ends a transaction: with fail it is rolled back.
func Discharge(txn []byte, fail bool) []byte {
	return Described(SectionValue, Described(CodeDischarge, List(Binary(txn), Bool(fail))))
}

// Under is a delivery state that belongs to a transaction; without an outcome it is a posted message's.
func Under(txn []byte, outcome ...[]byte) []byte {
	return Described(CodeTransactional, List(append([][]byte{Binary(txn)}, outcome...)...))
}

// Post is Transfer of a message that is posted under a transaction.
func Post(handle, id uint32, more bool, txn, payload []byte) []byte {
	return NewFrame(0, 0, Described(CodeTransfer, List(Uint(handle), Uint(id), Binary(Uint(id)[1:]),
		Uint(0), Bool(false), Bool(more), Null(), Under(txn))), payload)
}

// Continue is a further transfer of the delivery that is under way on the link.
func Continue(handle uint32, more bool, payload []byte) []byte {
	return NewFrame(0, 0, Described(CodeTransfer, List(Uint(handle), Null(), Null(), Null(), Null(), Bool(more))), payload)
}

// Settle settles deliveries first to last, received from the peer, with an outcome
// that has no fields.
func Settle(first, last uint32, outcome uint64) []byte {
	return NewFrame(0, 0, Described(CodeDisposition, List(Bool(true), Uint(first), Uint(last), Bool(true),
		Described(outcome, List()))), nil)
}

// Detach closes a link.
func Detach(handle uint32) []byte {
	return NewFrame(0, 0, Described(CodeDetach, List(Uint(handle), Bool(true))), nil)
}

// Close ends the connection.
func Close() []byte { return NewFrame(0, 0, Described(CodeClose, List()), nil) }

// Init chooses the SASL mechanism ANONYMOUS.
func Init() []byte {
	return NewFrame(1, 0, Described(CodeInit, List(Symbol("ANONYMOUS"), Binary([]byte("guest")))), nil)
}
