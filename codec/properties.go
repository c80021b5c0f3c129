package codec

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Indexes of the fields of Properties, for PropertiesField.
const (
	PropMessageID = iota
	PropUserID
	PropTo
	PropSubject
	PropReplyTo
	PropCorrelationID
	PropContentType
	PropContentEncoding
	PropAbsoluteExpiryTime
	PropCreationTime
	PropGroupID
	PropGroupSequence
	PropReplyToGroupID
	propFields // their number
)

// Properties are the standard properties of a message [3.2.4].
type Properties struct {
	MessageID          any    // uint64, UUID, []byte, string or nil
	UserID             []byte // nil is null
	To                 Opt[string]
	Subject            Opt[string]
	ReplyTo            Opt[string]
	CorrelationID      any // as MessageID
	ContentType        Opt[Symbol]
	ContentEncoding    Opt[Symbol]
	AbsoluteExpiryTime Opt[Timestamp]
	CreationTime       Opt[Timestamp]
	GroupID            Opt[string]
	GroupSequence      Opt[uint32]
	ReplyToGroupID     Opt[string]
}

// Decode reads a whole properties section; nothing aliases it.
func (p *Properties) Decode(section []byte) error {
	*p = Properties{}
	value, err := openSection(section, CodeProperties)
	if err != nil {
		return err
	}
	var f fields
	rest := f.begin(value, "properties", propFields)
	p.MessageID = f.messageID("message-id")
	p.UserID = bytes.Clone(f.binary("user-id"))
	p.To = f.optString("to")
	p.Subject = f.optString("subject")
	p.ReplyTo = f.optString("reply-to")
	p.CorrelationID = f.messageID("correlation-id")
	p.ContentType = f.optSymbol("content-type")
	p.ContentEncoding = f.optSymbol("content-encoding")
	p.AbsoluteExpiryTime = f.optTimestamp("absolute-expiry-time")
	p.CreationTime = f.optTimestamp("creation-time")
	p.GroupID = f.optString("group-id")
	p.GroupSequence = f.optUint("group-sequence")
	p.ReplyToGroupID = f.optString("reply-to-group-id")
	return endSection(rest, CodeProperties, f.end())
}

// messageID reads one of the four types that an id may have [3.2.11-3.2.14].
func (f *fields) messageID(field string) any {
	if f.left > 0 && f.i < len(f.b) {
		switch f.b[f.i] {
		case formatNull, formatUlong, formatSmallUlong, formatUlong0, formatUUID,
			formatBinary8, formatBinary32, formatString8, formatString32:
		default:
			f.fail(field)
			return nil
		}
	}
	return f.value(field)
}

// Append writes a whole properties section; fields that are absent at the end
// are left out. An id of another type than the four is a fault of the program
// and panics.
func (p *Properties) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeProperties, propFields)
	dst = appendMessageID(dst, p.MessageID)
	dst = appendOptBinary(dst, p.UserID)
	dst = appendOptString(dst, p.To)
	dst = appendOptString(dst, p.Subject)
	dst = appendOptString(dst, p.ReplyTo)
	dst = appendMessageID(dst, p.CorrelationID)
	dst = appendOptSymbol(dst, p.ContentType)
	dst = appendOptSymbol(dst, p.ContentEncoding)
	dst = appendOptTimestamp(dst, p.AbsoluteExpiryTime)
	dst = appendOptTimestamp(dst, p.CreationTime)
	dst = appendOptString(dst, p.GroupID)
	dst = appendOptUint(dst, p.GroupSequence)
	dst = appendOptString(dst, p.ReplyToGroupID)
	absent := p.absentAtEnd()
	dst = dst[:len(dst)-absent]
	dst[at+2] -= byte(absent)
	return endComposite(dst, at)
}

// absentAtEnd counts the absent fields at the end, each of them one octet.
func (p *Properties) absentAtEnd() int {
	set := [propFields]bool{
		p.MessageID != nil, p.UserID != nil, p.To.Set, p.Subject.Set, p.ReplyTo.Set,
		p.CorrelationID != nil, p.ContentType.Set, p.ContentEncoding.Set,
		p.AbsoluteExpiryTime.Set, p.CreationTime.Set, p.GroupID.Set,
		p.GroupSequence.Set, p.ReplyToGroupID.Set,
	}
	n := 0
	for n < propFields && !set[propFields-1-n] {
		n++
	}
	return n
}

func appendMessageID(dst []byte, id any) []byte {
	switch id := id.(type) {
	case nil:
		return append(dst, formatNull)
	case string:
		return appendString(dst, id)
	case uint64:
		return appendUlong(dst, id)
	case UUID:
		return append(append(dst, formatUUID), id[:]...)
	case []byte:
		return appendBinary(dst, id)
	}
	panic("codec: message-id or correlation-id of another type than uint64, UUID, []byte and string")
}

// PropertiesField returns one field of a properties section as it is encoded,
// aliasing the section; index is one of the Prop constants. It is nil when the
// field is null or left out, or when section is nil. The fields before it are
// skipped, not decoded, and nothing is allocated.
func PropertiesField(section []byte, index int) (value []byte, err error) {
	if section == nil {
		return nil, nil
	}
	list, err := openSection(section, CodeProperties)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 && !isList(list[0]) {
		return nil, &Error{WrongType, "properties " + hexByte(list[0])}
	}
	b, count, _, err := readCompound(list)
	if err != nil {
		return nil, within("properties", err)
	}
	if count > propFields {
		return nil, &Error{Malformed, "properties of " + strconv.FormatUint(uint64(count), 10) + " fields"}
	}
	if index < 0 || uint64(index) >= uint64(count) {
		return nil, nil
	}
	for range index {
		if b, err = Skip(b); err != nil {
			return nil, within("properties", err)
		}
	}
	rest, err := Skip(b)
	if err != nil {
		return nil, within("properties", err)
	}
	if b[0] == formatNull {
		return nil, nil
	}
	n := len(b) - len(rest)
	return b[:n:n], nil
}

// ReadString returns the string that value encodes. It is false for another
// type, for octets that are not UTF-8, and for anything behind the string.
func ReadString(value []byte) (string, bool) {
	if len(value) == 0 || (value[0] != formatString8 && value[0] != formatString32) {
		return "", false
	}
	v, rest, err := readSized(value[0], value[1:])
	if err != nil || len(rest) != 0 || !utf8.Valid(v) {
		return "", false
	}
	return string(v), true
}

// ReadTimestamp returns the timestamp that value encodes, false for another
// type.
func ReadTimestamp(value []byte) (Timestamp, bool) {
	if len(value) != 9 || value[0] != formatTimestamp {
		return 0, false
	}
	return Timestamp(be64(value[1:])), true
}

// ReadMillis reads an integer of any width, or a timestamp, that counts milliseconds.
func ReadMillis(value []byte) (ms int64, ok bool) {
	if len(value) > 9 { // no number: nothing of it need be decoded
		return 0, false
	}
	v, _, err := ReadValue(value)
	if err != nil {
		return 0, false
	}
	switch v := v.(type) {
	case Timestamp:
		return int64(v), true
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint64:
		return int64(min(v, 1<<63-1)), true
	case uint32:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint8:
		return int64(v), true
	}
	return 0, false
}
