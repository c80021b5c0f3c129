package codec

import "strconv"

// Skip returns what follows the value at the start of b. It looks at the sizes
// that the value declares and not inside lists, maps and arrays: their size
// must be present and large enough for the number of elements they claim.
// A described value is skipped with its descriptor.
func Skip(b []byte) (rest []byte, err error) {
	for depth := 0; ; depth++ {
		if len(b) == 0 {
			return nil, &Error{Truncated, "value"}
		}
		c := b[0]
		if c != formatDescribed {
			return skipBare(c, b[1:])
		}
		if depth == MaxDepth {
			return nil, tooDeep()
		}
		if b, err = skipDescriptor(b[1:]); err != nil {
			return nil, err
		}
	}
}

// skipDescriptor skips a descriptor behind its 0x00.
func skipDescriptor(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, &Error{Truncated, "descriptor"}
	}
	if b[0] == formatDescribed {
		return nil, &Error{Malformed, "descriptor of a descriptor"}
	}
	return skipBare(b[0], b[1:])
}

// skipBare skips a value behind its format code c.
func skipBare(c byte, b []byte) (rest []byte, err error) {
	n := int(formatWidths[c])
	switch {
	case n >= 0:
		if len(b) >= n {
			return b[n:], nil
		}
		return nil, truncated(c, len(b))
	case n == sized8 && c < formatList8:
		if len(b) > 0 && int(b[0]) < len(b) {
			return b[1+int(b[0]):], nil
		}
		return nil, truncated(c, len(b))
	case n == unknownFormat:
		return nil, unknownFormatError(c)
	}
	return skipSized(c, b)
}

func skipSized(c byte, b []byte) (rest []byte, err error) {
	content, rest, err := readSized(c, b)
	if err != nil || c < formatList8 {
		return rest, err
	}
	count, elements, err := readCount(c, content)
	switch {
	case err != nil:
		return nil, err
	case uint64(count) <= uint64(len(elements)):
		return rest, nil
	case !isArray(c):
		return nil, tooMany(c, count)
	}
	// More elements than octets: right only if an element takes none.
	if _, err = readArrayContent(c, content); err != nil {
		return nil, err
	}
	return rest, nil
}

// readSized reads the size behind the format code c, which has one, and
// splits b there.
func readSized(c byte, b []byte) (content, rest []byte, err error) {
	if formatWidths[c] == sized8 {
		if len(b) == 0 || int(b[0]) > len(b)-1 {
			return nil, nil, truncated(c, len(b))
		}
		n := 1 + int(b[0])
		return b[1:n:n], b[n:], nil
	}
	if len(b) < 4 || uint64(be32(b)) > uint64(len(b)-4) {
		return nil, nil, truncated(c, len(b))
	}
	n := 4 + int(be32(b))
	return b[4:n:n], b[n:], nil
}

// readCount reads the number of elements at the start of the content of a
// compound or array with format code c.
func readCount(c byte, content []byte) (count uint32, elements []byte, err error) {
	if formatWidths[c] == sized8 {
		if len(content) == 0 {
			return 0, nil, &Error{Malformed, "compound " + hexByte(c) + " without count"}
		}
		return uint32(content[0]), content[1:], nil
	}
	if len(content) < 4 {
		return 0, nil, &Error{Malformed, "compound " + hexByte(c) + " without count"}
	}
	return be32(content), content[4:], nil
}

// readCompound reads the frame of a list or map with its format code: where
// its elements are and how many it claims, which are never more than there
// are octets. A map's keys and values count one each.
func readCompound(b []byte) (elements []byte, count uint32, rest []byte, err error) {
	if len(b) == 0 {
		return nil, 0, nil, &Error{Truncated, "value"}
	}
	c := b[0]
	if c == formatList0 {
		return nil, 0, b[1:], nil
	}
	if !isList(c) && !isMap(c) {
		return nil, 0, nil, &Error{WrongType, "compound " + hexByte(c)}
	}
	content, rest, err := readSized(c, b[1:])
	if err != nil {
		return nil, 0, nil, err
	}
	count, elements, err = readCount(c, content)
	switch {
	case err != nil:
		return nil, 0, nil, err
	case uint64(count) > uint64(len(elements)):
		return nil, 0, nil, tooMany(c, count)
	case isMap(c) && count%2 != 0:
		return nil, 0, nil, &Error{Malformed, "map of " + strconv.FormatUint(uint64(count), 10) + " keys and values"}
	}
	return elements, count, rest, nil
}

func tooDeep() error {
	return &Error{TooDeep, "value beyond " + strconv.Itoa(MaxDepth) + " levels"}
}

func tooMany(c byte, count uint32) error {
	return &Error{TooMany, "compound " + hexByte(c) + " of " + strconv.FormatUint(uint64(count), 10)}
}

func truncated(c byte, present int) error {
	return &Error{Truncated, "value " + hexByte(c) + " with " + strconv.Itoa(present) + " octets present"}
}

func unknownFormatError(c byte) error {
	return &Error{Malformed, "format code " + hexByte(c)}
}
