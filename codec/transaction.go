package codec

import "bytes"

// Declare asks the coordinator for a new transaction [4.5.2].
type Declare struct {
	GlobalID any // nil for a local transaction
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (d *Declare) Decode(b []byte) (rest []byte, err error) {
	*d = Declare{}
	var f fields
	rest = f.begin(b, "declare", 1)
	d.GlobalID = f.value("global-id")
	return rest, f.end()
}

// Append writes the request with its descriptor and its field.
func (d *Declare) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeDeclare, 1)
	dst = mustAppend(dst, d.GlobalID)
	return endComposite(dst, at)
}

// Discharge ends a transaction [4.5.3].
type Discharge struct {
	TxnID []byte
	// Fail rolls the transaction back; otherwise it is to commit.
	Fail bool
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (d *Discharge) Decode(b []byte) (rest []byte, err error) {
	*d = Discharge{}
	var f fields
	rest = f.begin(b, "discharge", 2)
	d.TxnID = bytes.Clone(f.needBinary("txn-id"))
	d.Fail = f.bool("fail")
	return rest, f.end()
}

// Append writes the request with its descriptor and all its fields.
func (d *Discharge) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeDischarge, 2)
	dst = appendBinary(dst, d.TxnID)
	dst = appendBool(dst, d.Fail)
	return endComposite(dst, at)
}
