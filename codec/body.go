package codec

// AppendData writes a data section [3.2.6].
func AppendData(dst []byte, data []byte) []byte {
	return appendBinary(append(dst, formatDescribed, formatSmallUlong, byte(CodeData)), data)
}

// AppendAmqpSequence writes an amqp-sequence section [3.2.7].
func AppendAmqpSequence(dst []byte, l List) ([]byte, error) {
	return appendBody(dst, CodeAmqpSequence, l)
}

// AppendAmqpValue writes an amqp-value section [3.2.8].
func AppendAmqpValue(dst []byte, v any) ([]byte, error) {
	return appendBody(dst, CodeAmqpValue, v)
}

func appendBody(dst []byte, code Code, v any) ([]byte, error) {
	out, err := AppendValue(append(dst, formatDescribed, formatSmallUlong, byte(code)), v)
	if err != nil {
		return dst, err
	}
	return out, nil
}
