package codec

// arrayHeader is an array whose elements are not decoded yet.
type arrayHeader struct {
	count      uint32
	described  bool
	descriptor []byte // encoded; nil unless described
	code       byte   // the elements' constructor
	elements   []byte
}

// readArrayHeader reads an array with its format code. The number of elements
// it returns fits the octets there are, and is at most MaxElements when an
// element takes none.
func readArrayHeader(b []byte) (a arrayHeader, rest []byte, err error) {
	if len(b) == 0 {
		return a, nil, &Error{Truncated, "array"}
	}
	if !isArray(b[0]) {
		return a, nil, &Error{WrongType, "array " + hexByte(b[0])}
	}
	content, rest, err := readSized(b[0], b[1:])
	if err != nil {
		return a, nil, err
	}
	a, err = readArrayContent(b[0], content)
	return a, rest, err
}

// readArrayContent reads what follows the size of an array of format code c.
func readArrayContent(c byte, content []byte) (a arrayHeader, err error) {
	var b []byte
	if a.count, b, err = readCount(c, content); err != nil {
		return a, err
	}
	if len(b) == 0 {
		// Some encoders leave the constructor of an empty array out.
		if a.count != 0 {
			return a, tooMany(c, a.count)
		}
		a.code = formatNull
		return a, nil
	}
	if b[0] == formatDescribed {
		after, err := skipDescriptor(b[1:])
		if err != nil {
			return a, err
		}
		a.described, a.descriptor = true, b[1:len(b)-len(after)]
		b = after
		if len(b) == 0 {
			return a, &Error{Truncated, "array constructor"}
		}
		if b[0] == formatDescribed {
			return a, &Error{Malformed, "array constructor with two descriptors"}
		}
	}
	a.code, a.elements = b[0], b[1:]
	return a, a.check(c)
}

// check compares the number of elements with the octets there are.
func (a *arrayHeader) check(c byte) error {
	n, have := uint64(a.count), uint64(len(a.elements))
	switch width := formatWidths[a.code]; {
	case width == unknownFormat:
		return unknownFormatError(a.code)
	case width == 0 && n > MaxElements:
		return tooMany(c, a.count)
	case width >= 0 && n*uint64(width) > have, width == sized8 && n > have, width == sized32 && n*4 > have:
		return tooMany(c, a.count)
	case width >= 0 && n*uint64(width) < have, n == 0 && have != 0:
		return &Error{Malformed, "array with octets behind its last element"}
	}
	return nil
}

// array decodes an array of format code c behind its size.
func (r *valueReader) array(c byte, content []byte, depth int) (v any, err error) {
	h, err := readArrayContent(c, content)
	if err != nil {
		return nil, err
	}
	if h.count > MaxElements {
		return nil, tooMany(c, h.count)
	}
	a := Array{Code: h.code}
	if h.described {
		if a.Descriptor, _, err = r.value(h.descriptor, depth+1); err != nil {
			return nil, err
		}
	}
	if formatWidths[h.code] == 0 {
		a.Elements, err = r.zeroWidth(c, h.code, h.count)
	} else {
		a.Elements, err = r.arrayElements(h, depth+1)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (r *valueReader) arrayElements(h arrayHeader, depth int) ([]any, error) {
	elements := make([]any, h.count)
	b := h.elements
	for i := range elements {
		var err error
		if elements[i], b, err = r.bare(h.code, b, depth); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, &Error{Malformed, "array with octets behind its last element"}
	}
	return elements, nil
}

// zeroWidth makes elements that take no octets, as long as the whole value has
// not had too many of them.
func (r *valueReader) zeroWidth(c, code byte, count uint32) ([]any, error) {
	r.zeroWidths += int(count)
	if r.zeroWidths > MaxZeroWidth {
		return nil, tooMany(c, count)
	}
	v, _, err := r.bare(code, nil, 0)
	if err != nil {
		return nil, err
	}
	elements := make([]any, count)
	for i := range elements {
		elements[i] = v
	}
	return elements, nil
}
