package codec

// Fields of fixed width. opt reads a field that may be null or left out, need
// one that must be there, and Or puts a default in its place.

func (f *fields) optUint(field string) Opt[uint32] {
	if f.left == 0 {
		return Opt[uint32]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatNull:
			f.i = i + 1
			return Opt[uint32]{}
		case formatUint0:
			f.i = i + 1
			return Opt[uint32]{0, true}
		case formatSmallUint:
			if i+1 < len(b) {
				f.i = i + 2
				return Opt[uint32]{uint32(b[i+1]), true}
			}
		case formatUint:
			if i+4 < len(b) {
				f.i = i + 5
				return Opt[uint32]{be32(b[i+1:]), true}
			}
		}
	}
	f.fail(field)
	return Opt[uint32]{}
}

func (f *fields) uintOr(field string, def uint32) uint32 { return f.optUint(field).Or(def) }

func (f *fields) needUint(field string) uint32 {
	v := f.optUint(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

func (f *fields) optUlong(field string) Opt[uint64] {
	if f.left == 0 {
		return Opt[uint64]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatNull:
			f.i = i + 1
			return Opt[uint64]{}
		case formatUlong0:
			f.i = i + 1
			return Opt[uint64]{0, true}
		case formatSmallUlong:
			if i+1 < len(b) {
				f.i = i + 2
				return Opt[uint64]{uint64(b[i+1]), true}
			}
		case formatUlong:
			if i+8 < len(b) {
				f.i = i + 9
				return Opt[uint64]{be64(b[i+1:]), true}
			}
		}
	}
	f.fail(field)
	return Opt[uint64]{}
}

func (f *fields) needUlong(field string) uint64 {
	v := f.optUlong(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}

// fixed returns the octets of a field of the one fixed-width format c, nil
// for null and after an error.
func (f *fields) fixed(field string, c byte, width int) []byte {
	if f.left == 0 {
		return nil
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch {
		case b[i] == formatNull:
			f.i = i + 1
			return nil
		case b[i] == c && i+width < len(b):
			f.i = i + 1 + width
			return b[i+1 : i+1+width]
		}
	}
	f.fail(field)
	return nil
}

func (f *fields) optUshort(field string) Opt[uint16] {
	if b := f.fixed(field, formatUshort, 2); b != nil {
		return Opt[uint16]{be16(b), true}
	}
	return Opt[uint16]{}
}

func (f *fields) optUbyte(field string) Opt[uint8] {
	if b := f.fixed(field, formatUbyte, 1); b != nil {
		return Opt[uint8]{b[0], true}
	}
	return Opt[uint8]{}
}

func (f *fields) optTimestamp(field string) Opt[Timestamp] {
	if b := f.fixed(field, formatTimestamp, 8); b != nil {
		return Opt[Timestamp]{Timestamp(be64(b)), true}
	}
	return Opt[Timestamp]{}
}

func (f *fields) optBool(field string) Opt[bool] {
	if f.left == 0 {
		return Opt[bool]{}
	}
	f.left--
	if b, i := f.b, f.i; i < len(b) {
		switch b[i] {
		case formatFalse:
			f.i = i + 1
			return Opt[bool]{false, true}
		case formatTrue:
			f.i = i + 1
			return Opt[bool]{true, true}
		case formatNull:
			f.i = i + 1
			return Opt[bool]{}
		case formatBool:
			if i+1 < len(b) {
				f.i = i + 2
				if b[i+1] > 1 {
					f.failWith(field, &Error{Malformed, "boolean " + hexByte(b[i+1])})
				}
				return Opt[bool]{b[i+1] == 1, true}
			}
		}
	}
	f.fail(field)
	return Opt[bool]{}
}

// bool reads a boolean that defaults to false.
func (f *fields) bool(field string) bool { return f.optBool(field).Value }

func (f *fields) needBool(field string) bool {
	v := f.optBool(field)
	if !v.Set {
		f.missing(field)
	}
	return v.Value
}
