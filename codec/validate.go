package codec

import "strconv"

// Validate checks the value at the start of b with everything inside it, and
// returns what follows it. It allocates nothing and takes time linear in the
// size of b. It checks what ReadValue checks but for the content of strings
// and symbols, duplicate map keys, and the number of elements that take octets.
func Validate(b []byte) (rest []byte, err error) { return validate(b, 0) }

func validate(b []byte, depth int) (rest []byte, err error) {
	for {
		if len(b) == 0 {
			return nil, &Error{Truncated, "value"}
		}
		if b[0] != formatDescribed {
			return validateBare(b[0], b[1:], depth)
		}
		if depth >= MaxDepth {
			return nil, tooDeep()
		}
		depth++
		if b, err = validateDescriptor(b[1:], depth); err != nil {
			return nil, err
		}
	}
}

func validateDescriptor(b []byte, depth int) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, &Error{Truncated, "descriptor"}
	}
	if b[0] == formatDescribed {
		return nil, &Error{Malformed, "descriptor of a descriptor"}
	}
	return validateBare(b[0], b[1:], depth)
}

func validateBare(c byte, b []byte, depth int) (rest []byte, err error) {
	if c == formatBool && len(b) > 0 && b[0] > 1 {
		return nil, &Error{Malformed, "boolean " + hexByte(b[0])}
	}
	if c < formatList8 {
		return skipBare(c, b)
	}
	if formatWidths[c] == unknownFormat {
		return nil, unknownFormatError(c)
	}
	if depth >= MaxDepth {
		return nil, tooDeep()
	}
	content, rest, err := readSized(c, b)
	if err != nil {
		return nil, err
	}
	if isArray(c) {
		return rest, validateArray(c, content, depth)
	}
	return rest, validateCompound(c, content, depth)
}

func validateCompound(c byte, content []byte, depth int) error {
	count, b, err := readCount(c, content)
	switch {
	case err != nil:
		return err
	case uint64(count) > uint64(len(b)):
		return tooMany(c, count)
	case isMap(c) && count%2 != 0:
		return &Error{Malformed, "map of " + strconv.FormatUint(uint64(count), 10) + " keys and values"}
	}
	for range count {
		if b, err = validate(b, depth+1); err != nil {
			return err
		}
	}
	if len(b) != 0 {
		return &Error{Malformed, "compound with octets behind its last element"}
	}
	return nil
}

func validateArray(c byte, content []byte, depth int) error {
	a, err := readArrayContent(c, content)
	if err != nil {
		return err
	}
	if a.described {
		if _, err = validateDescriptor(a.descriptor, depth+1); err != nil {
			return err
		}
	}
	if formatWidths[a.code] >= 0 && a.code != formatBool {
		return nil // readArrayContent has multiplied
	}
	b := a.elements
	for range a.count {
		if b, err = validateBare(a.code, b, depth+1); err != nil {
			return err
		}
	}
	if len(b) != 0 {
		return &Error{Malformed, "array with octets behind its last element"}
	}
	return nil
}
