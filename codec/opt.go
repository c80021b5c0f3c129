package codec

// Opt is a field that may be absent. Its zero value is absent.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some returns a field that is present.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Or returns the field's value, or def when the field is absent.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.Value
	}
	return def
}
