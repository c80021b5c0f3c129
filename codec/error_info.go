package codec

// ErrorInfo is the error that one end tells the other [2.8.14].
type ErrorInfo struct {
	Condition   Symbol
	Description string // "" is null
	Info        Map    // nil is null
}

// Decode reads the list behind the descriptor; nothing aliases b.
func (e *ErrorInfo) Decode(b []byte) (rest []byte, err error) {
	*e = ErrorInfo{}
	var f fields
	rest = f.begin(b, "error", 3)
	e.Condition = f.needSymbol("condition")
	e.Description = f.string("description")
	e.Info = f.fieldMap("info")
	return rest, f.end()
}

// Append writes the error with its descriptor and all its fields.
func (e *ErrorInfo) Append(dst []byte) []byte {
	dst, at := beginComposite(dst, CodeError, 3)
	dst = appendSymbol(dst, e.Condition)
	dst = appendNonEmptyString(dst, e.Description)
	dst = appendFields(dst, e.Info)
	return endComposite(dst, at)
}

func appendErrorInfo(dst []byte, e *ErrorInfo) []byte {
	if e == nil {
		return append(dst, formatNull)
	}
	return e.Append(dst)
}

// errorInfo reads a field that holds an error, nil for null.
func (f *fields) errorInfo(field string) *ErrorInfo {
	code, content, ok := f.described(field)
	if !ok {
		return nil
	}
	if code != CodeError {
		f.failWith(field, &Error{WrongType, "described value"})
		return nil
	}
	e := new(ErrorInfo)
	rest, err := e.Decode(content)
	if err != nil {
		f.failWith(field, err)
		return nil
	}
	f.skipTo(rest)
	return e
}
