package codec

// List is a sequence of values, each with a type of its own [1.6.22].
type List []any

// Pair is one entry of a Map.
type Pair struct{ Key, Value any }

// Map holds entries in the order in which they were received: order is
// significant unless both ends know otherwise [1.6.23].
type Map []Pair

// Get returns the value under key, whether the key is a symbol or a string.
func (m Map) Get(key string) (any, bool) {
	for i := range m {
		switch k := m[i].Key.(type) {
		case Symbol:
			if string(k) == key {
				return m[i].Value, true
			}
		case string:
			if k == key {
				return m[i].Value, true
			}
		}
	}
	return nil, false
}

// Array is a sequence of values of one type [1.6.24].
type Array struct {
	// Descriptor describes every element; nil when they are not described.
	Descriptor any
	// Code is the elements' constructor as received. When an array is
	// written, the constructor is widened if an element needs it.
	Code byte
	// Elements are the bare values, without Descriptor.
	Elements []any
}

// Described is a value with a descriptor that gives it further meaning [1.1.2].
type Described struct {
	// Descriptor is a uint64 or a Symbol; other types are reserved [1.5].
	Descriptor any
	Value      any
}

// Code returns the code of a type that this package knows, whichever form its
// descriptor has.
func (d Described) Code() (Code, bool) {
	switch v := d.Descriptor.(type) {
	case uint64:
		c := Code(v)
		return c, c.known()
	case Symbol:
		c, ok := codesByName[string(v)]
		return c, ok
	}
	return 0, false
}
