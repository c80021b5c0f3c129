package queue

import (
	"reflect"
	"testing"
)

func TestFreshCopiesAllThatWasSent(t *testing.T) {
	m := &Message{}
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !f.CanSet(): // refs
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(int64(i + 1))
		case f.CanUint():
			f.SetUint(uint64(i + 1))
		case f.Kind() == reflect.String:
			f.SetString("text")
		default:
			f.SetBytes([]byte("payload"))
		}
	}
	want := *m
	m.Hold(3)
	if got := m.Fresh(); !reflect.DeepEqual(*got, want) {
		t.Errorf("fresh = %+v, want %+v", got, want)
	}
}
