package codec

// checkDuplicates refuses a map with the same key twice [1.6.23], in time
// linear in the map's size.
func checkDuplicates(m Map) error {
	if len(m) <= 8 {
		for i := 1; i < len(m); i++ {
			k := comparableKey(m[i].Key)
			for j := range i {
				if comparableKey(m[j].Key) == k {
					return errDuplicateKey
				}
			}
		}
		return nil
	}
	seen := make(map[any]struct{}, len(m))
	for i := range m {
		k := comparableKey(m[i].Key)
		if _, dup := seen[k]; dup {
			return errDuplicateKey
		}
		seen[k] = struct{}{}
	}
	return nil
}

var errDuplicateKey error = &Error{Malformed, "map with the same key twice"}

// Keys of types that Go cannot compare are compared by octets.
type (
	binaryKey  string
	encodedKey string
)

// comparableKey returns a value that is equal for equal keys.
func comparableKey(k any) any {
	switch k := k.(type) {
	case []byte:
		return binaryKey(k)
	case List, Map, Array, Described:
		b, err := AppendValue(nil, k)
		if err != nil {
			return encodedKey("")
		}
		return encodedKey(b)
	}
	return k
}
