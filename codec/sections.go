package codec

// Sections are the parts of an encoded message [3.2]. Every slice aliases the
// message, holds whole sections with their descriptors, and is nil when there
// are none.
type Sections struct {
	Header                []byte
	DeliveryAnnotations   []byte
	MessageAnnotations    []byte
	Properties            []byte
	ApplicationProperties []byte
	// Body spans all data or amqp-sequence sections, or the one amqp-value.
	Body   []byte
	Footer []byte

	// Stored is everything behind header and delivery-annotations, which belong
	// to one hop only.
	Stored []byte
	// Bare is properties, application-properties and body: what no
	// intermediary may change.
	Bare []byte
}

// Split finds the sections of a message. It checks their order, that none but
// data and amqp-sequence stands twice, that only one kind of body is there,
// and that each holds the type of value it must; it doesn't look inside them.
// A message without body, and an empty one, are let pass. It allocates nothing.
func Split(message []byte) (s Sections, err error) {
	var last Code
	bare, body := -1, -1
	stored := 0
	for at := 0; at < len(message); {
		code, value, err := ReadDescriptor(message[at:])
		if err != nil {
			return Sections{}, within("section", err)
		}
		if err = checkOrder(last, code); err != nil {
			return Sections{}, err
		}
		if len(value) == 0 || !holds(code, value[0]) {
			return Sections{}, badSection(code, value)
		}
		rest, err := Skip(value)
		if err != nil {
			return Sections{}, within(code.String(), err)
		}
		end := len(message) - len(rest)
		whole := message[at:end:end]
		switch code {
		case CodeHeader:
			s.Header, stored = whole, end
		case CodeDeliveryAnnotations:
			s.DeliveryAnnotations, stored = whole, end
		case CodeMessageAnnotations:
			s.MessageAnnotations = whole
		case CodeFooter:
			s.Footer = whole
		default:
			if bare < 0 {
				bare = at
			}
			s.Bare = message[bare:end:end]
			switch code {
			case CodeProperties:
				s.Properties = whole
			case CodeApplicationProperties:
				s.ApplicationProperties = whole
			default:
				if body < 0 {
					body = at
				}
				s.Body = message[body:end:end]
			}
		}
		last, at = code, end
	}
	if stored < len(message) {
		s.Stored = message[stored:]
	}
	return s, nil
}

// checkOrder says whether a section may follow the section last. The codes
// ascend in the order of the sections, so that only the body needs a rule.
func checkOrder(last, code Code) error {
	switch {
	case !code.IsSection():
		return &Error{Malformed, "section " + code.String()}
	case code == last && (code == CodeData || code == CodeAmqpSequence):
		return nil
	case code <= last:
		return &Error{Malformed, "section " + code.String() + " behind " + last.String()}
	case code.isBody() && last.isBody():
		return &Error{Malformed, "body of " + last.String() + " and " + code.String()}
	}
	return nil
}

func (c Code) isBody() bool { return c >= CodeData && c <= CodeAmqpValue }

// holds says whether a section's value may have the format code c.
func holds(section Code, c byte) bool {
	switch section {
	case CodeHeader, CodeProperties, CodeAmqpSequence:
		return isList(c)
	case CodeData:
		return c == formatBinary8 || c == formatBinary32
	case CodeAmqpValue:
		return true
	}
	return isMap(c)
}

func badSection(code Code, value []byte) error {
	if len(value) == 0 {
		return &Error{Truncated, code.String()}
	}
	return &Error{WrongType, code.String() + " " + hexByte(value[0])}
}

// openSection returns the value of a section that must be of the given type.
func openSection(section []byte, want Code) (value []byte, err error) {
	code, value, err := ReadDescriptor(section)
	if err != nil {
		return nil, within("section", err)
	}
	if code != want {
		return nil, &Error{WrongType, "section " + code.String() + " in place of " + want.String()}
	}
	return value, nil
}

// endSection refuses octets behind a section.
func endSection(rest []byte, code Code, err error) error {
	if err == nil && len(rest) != 0 {
		return &Error{Malformed, "octets behind " + code.String()}
	}
	return err
}
