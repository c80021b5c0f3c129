package amqptest

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/letomq/leto/codec"
)

// kebab turns a Go field's name into the specification's: ContainerID is container-id.
func kebab(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Names of numbers that read better than the numbers.
var numbers = map[string]map[string]uint8{
	"snd-settle-mode": {"unsettled": codec.SettleUnsettled, "settled": codec.SettleSettled, "mixed": codec.SettleMixed},
	"rcv-settle-mode": {"first": codec.ReceiveFirst, "second": codec.ReceiveSecond},
}

// StateNamed returns the delivery state of that name.
func StateNamed(name string) (codec.StateKind, bool) {
	for k := codec.StateNone; k <= codec.StateUnknown; k++ {
		if k.String() == name || k == codec.StateNone && name == "null" {
			return k, true
		}
	}
	return 0, false
}

// octets reads hex, `text` or fill:N.
func octets(text string) ([]byte, error) {
	if n, ok := strings.CutPrefix(text, "fill:"); ok {
		count, err := strconv.Atoi(n)
		return []byte(strings.Repeat("x", count)), err
	}
	if len(text) >= 2 && text[0] == '`' && text[len(text)-1] == '`' {
		return []byte(text[1 : len(text)-1]), nil
	}
	return hex.DecodeString(text)
}

func unquote(text string) string {
	if strings.HasPrefix(text, "fill:") || strings.HasPrefix(text, "`") {
		b, err := octets(text)
		if err == nil {
			return string(b)
		}
	}
	return text
}

// setField sets the field of p, a pointer to a struct, that path leads to.
func setField(p any, path, text string) error {
	return set(reflect.ValueOf(p).Elem(), strings.Split(path, "."), path, text)
}

func set(v reflect.Value, path []string, name, text string) error {
	if v.Kind() == reflect.Pointer {
		if text == "null" && len(path) == 0 {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if m, ok := v.Addr().Interface().(*codec.Map); ok && len(path) > 0 {
		*m = append(*m, codec.Pair{Key: codec.Symbol(strings.Join(path, ".")), Value: unquote(text)})
		return nil
	}
	if len(path) > 0 {
		f := fieldNamed(v, path[0])
		if !f.IsValid() {
			return fmt.Errorf("no field %q in %s", path[0], v.Type())
		}
		return set(f, path[1:], path[0], text)
	}
	if f := v.FieldByNameFunc; v.Kind() == reflect.Struct && v.NumField() == 2 && f(func(n string) bool { return n == "Set" }).IsValid() {
		if text == "null" {
			v.SetZero()
			return nil
		}
		v.FieldByName("Set").SetBool(true)
		return set(v.FieldByName("Value"), nil, name, text)
	}
	return setScalar(v, name, text)
}

func setScalar(v reflect.Value, name, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *codec.Role:
		*p = text == "receiver"
		if text != "receiver" && text != "sender" {
			return fmt.Errorf("role %q", text)
		}
	case *codec.ErrorInfo:
		p.Condition = codec.Symbol(text)
	case *codec.DeliveryState:
		kind, ok := StateNamed(text)
		if !ok {
			return fmt.Errorf("state %q", text)
		}
		p.Kind = kind
	case *[]byte:
		if text == "null" {
			*p = nil
			return nil
		}
		b, err := octets(text)
		*p = b
		return err
	case *[]codec.Symbol:
		*p = nil
		for _, s := range strings.Split(text, ",") {
			*p = append(*p, codec.Symbol(s))
		}
	default:
		return setKind(v, name, text)
	}
	return nil
}

func setKind(v reflect.Value, name, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(unquote(text))
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n, ok := numbers[name][text]; ok {
			v.SetUint(uint64(n))
			return nil
		}
		n, err := strconv.ParseUint(text, 0, v.Type().Bits())
		v.SetUint(n)
		return err
	default:
		return fmt.Errorf("field of type %s", v.Type())
	}
	return nil
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	return v.FieldByNameFunc(func(field string) bool { return kebab(field) == name })
}

// matches compares the field that path leads to with its text; got is what is there.
func matches(p any, path, text string) (ok bool, got string, err error) {
	v := reflect.ValueOf(p).Elem()
	steps := strings.Split(path, ".")
	for i, step := range steps {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return text == "null", "null", nil
			}
			v = v.Elem()
		}
		if m, isMap := v.Interface().(codec.Map); isMap {
			value, found := m.Get(strings.Join(steps[i:], "."))
			got = fmt.Sprint(value)
			if !found {
				got = "null"
			}
			return got == text, got, nil
		}
		if v = fieldNamed(v, step); !v.IsValid() {
			return false, "", fmt.Errorf("no field %q", path)
		}
	}
	got = show(v)
	if v.Kind() == reflect.Pointer && text == "null" {
		return v.IsNil(), got, nil
	}
	if text == "*" {
		return got != "null", got, nil
	}
	want := reflect.New(v.Type()).Elem()
	if err := set(want, nil, steps[len(steps)-1], text); err != nil {
		return false, got, err
	}
	switch x := v.Interface().(type) {
	case *codec.ErrorInfo:
		return x != nil && string(x.Condition) == text, got, nil
	case codec.DeliveryState:
		return x.Kind == want.Interface().(codec.DeliveryState).Kind, got, nil
	}
	return show(want) == got, got, nil
}

// show writes a value as a script would.
func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case *codec.ErrorInfo:
		if x == nil {
			return "null"
		}
		return fmt.Sprintf("%s error.description=`%s`", x.Condition, x.Description)
	case codec.DeliveryState:
		return x.Kind.String()
	case codec.Role:
		return x.String()
	case []byte:
		return showOctets(x)
	case string:
		if len(x) > 80 {
			return fmt.Sprintf("%s…(%d octets)", x[:40], len(x))
		}
		return x
	case []codec.Symbol:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(x), " ", ","), "[]")
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return "{" + showFields(v.Interface()) + "}"
	case reflect.Struct:
		if set := v.FieldByName("Set"); set.IsValid() {
			if !set.Bool() {
				return "null"
			}
			return show(v.FieldByName("Value"))
		}
	}
	return fmt.Sprint(v.Interface())
}

func showOctets(b []byte) string {
	if b == nil {
		return "null"
	}
	if len(b) > 40 {
		return fmt.Sprintf("%x…(%d octets)", b[:16], len(b))
	}
	for _, c := range b {
		if c < ' ' || c > '~' || c == '`' {
			return hex.EncodeToString(b)
		}
	}
	return "`" + string(b) + "`"
}

// showFields writes the fields of *p that aren't zero.
func showFields(p any) string {
	v := reflect.ValueOf(p).Elem()
	var all []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			all = append(all, kebab(v.Type().Field(i).Name)+"="+show(f))
		}
	}
	return strings.Join(all, " ")
}
