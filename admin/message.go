package admin

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/engine/queue"
)

// Message is a message in the API. What it doesn't have is left out.
type Message struct {
	Number        uint64 `json:"number" doc:"the broker's, ascending in order of arrival"`
	Priority      uint8  `json:"priority"`
	Durable       bool   `json:"durable"`
	DeliveryCount uint32 `json:"delivery_count" doc:"failed attempts"`
	Size          int    `json:"size" doc:"bytes, from message-annotations to footer"`

	ArrivedAt *time.Time `json:"arrived_at,omitempty" doc:"at the broker"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	DueAt     *time.Time `json:"due_at,omitempty" doc:"when it may be delivered, of one that waits for its time; the end of 9999 also for what is later"`

	DeathReason     string     `json:"death_reason,omitempty" doc:"why it was dead-lettered"`
	DiedAt          *time.Time `json:"died_at,omitempty" doc:"when it was dead-lettered"`
	OriginalAddress string     `json:"original_address,omitempty" doc:"where it was before it died, expired or was moved"`
	OriginalQueue   string     `json:"original_queue,omitempty" doc:"its queue there"`
	ExpiredAt       *time.Time `json:"expired_at,omitempty"`

	MessageID     any        `json:"message_id,omitempty"`
	CorrelationID any        `json:"correlation_id,omitempty"`
	To            string     `json:"to,omitempty"`
	Subject       string     `json:"subject,omitempty"`
	ReplyTo       string     `json:"reply_to,omitempty"`
	ContentType   string     `json:"content_type,omitempty"`
	GroupID       string     `json:"group_id,omitempty"`
	CreatedAt     *time.Time `json:"created_at,omitempty"`

	Annotations           map[string]any `json:"annotations,omitempty"`
	ApplicationProperties map[string]any `json:"application_properties,omitempty"`

	Body       any    `json:"body,omitempty" doc:"text, or what JSON can say of other values"`
	BodyBase64 string `json:"body_base64,omitempty" doc:"instead of body: bytes that are no text"`
	Truncated  bool   `json:"truncated,omitempty" doc:"the body is longer than was asked for"`
	Malformed  string `json:"malformed,omitempty" doc:"what can't be read of it"`
}

// view reads a message as far as it is asked to, once.
type view struct {
	delivery   *engine.Delivery
	sections   codec.Sections
	err        error
	properties *codec.Properties
	custom     codec.Map // application-properties
	customRead bool
	notes      codec.Map // message-annotations, with those that the broker has written
	notesRead  bool
}

func newView(d *engine.Delivery) *view {
	v := &view{delivery: d}
	v.sections, v.err = codec.Split(d.Message.Payload)
	return v
}

func (v *view) fail(err error) {
	if v.err == nil {
		v.err = err
	}
}

func (v *view) props() *codec.Properties {
	if v.properties == nil {
		v.properties = &codec.Properties{}
		if v.sections.Properties != nil {
			if err := v.properties.Decode(v.sections.Properties); err != nil {
				v.fail(err)
			}
		}
	}
	return v.properties
}

// section reads a section that is a map.
func (v *view) section(b []byte) codec.Map {
	if b == nil {
		return nil
	}
	value, _, err := codec.ReadValue(b)
	if err != nil {
		v.fail(err)
		return nil
	}
	described, _ := value.(codec.Described)
	m, _ := described.Value.(codec.Map)
	return m
}

func (v *view) application() codec.Map {
	if !v.customRead {
		v.customRead = true
		v.custom = v.section(v.sections.ApplicationProperties)
	}
	return v.custom
}

// annotations returns what a consumer would be given: what the sender wrote, and over it what the broker has.
func (v *view) annotations() codec.Map {
	if v.notesRead {
		return v.notes
	}
	v.notesRead = true
	for _, pair := range v.section(v.sections.MessageAnnotations) {
		if key, ok := pair.Key.(codec.Symbol); !ok || !v.written(string(key)) {
			v.notes = append(v.notes, pair)
		}
	}
	for _, a := range v.delivery.Annotations {
		value := a.Value
		switch known := value.(type) {
		case queue.Millis:
			value = codec.Timestamp(known)
		case queue.Encoded:
			decoded, _, err := codec.ReadValue(known)
			if err != nil {
				v.fail(err)
				continue
			}
			value = decoded
		}
		v.notes = append(v.notes, codec.Pair{Key: codec.Symbol(a.Key), Value: value})
	}
	return v.notes
}

// written reports whether the broker has written an annotation.
func (v *view) written(key string) bool {
	for _, a := range v.delivery.Annotations {
		if a.Key == key {
			return true
		}
	}
	return false
}

// find returns the value of a key that is a symbol or a string.
func find(m codec.Map, key string) any {
	for _, pair := range m {
		switch k := pair.Key.(type) {
		case codec.Symbol:
			if string(k) == key {
				return pair.Value
			}
		case string:
			if k == key {
				return pair.Value
			}
		}
	}
	return nil
}

// lookup returns what an identifier of a filter stands for: JMS's names for header and properties, m.KEY for an
// annotation, and an application property of any other name.
func (v *view) lookup(name string) any {
	m := v.delivery.Message
	text := func(o codec.Opt[string]) any {
		if !o.Set {
			return nil
		}
		return o.Value
	}
	switch name {
	case "JMSMessageID":
		return comparable(v.props().MessageID)
	case "JMSCorrelationID":
		return comparable(v.props().CorrelationID)
	case "JMSType":
		return text(v.props().Subject)
	case "JMSReplyTo":
		return text(v.props().ReplyTo)
	case "JMSDestination":
		return m.Address
	case "JMSXGroupID":
		return text(v.props().GroupID)
	case "JMSTimestamp":
		if t := v.props().CreationTime; t.Set {
			return int64(t.Value)
		}
		return nil
	case "JMSExpiration":
		return m.Expiry
	case "JMSPriority":
		return int64(m.Priority)
	case "JMSDeliveryMode":
		if m.Durable {
			return "PERSISTENT"
		}
		return "NON_PERSISTENT"
	case "JMSXDeliveryCount":
		return int64(v.delivery.Count) + 1
	}
	if key, annotation := strings.CutPrefix(name, "m."); annotation {
		return comparable(find(v.annotations(), key))
	}
	return comparable(find(v.application(), name))
}

// comparable returns a value as a filter compares it; nil for what it can't.
func comparable(v any) any {
	switch v := v.(type) {
	case string, bool, int64, float64:
		return v
	case codec.Symbol:
		return string(v)
	case codec.UUID:
		return plainUUID(v)
	case codec.Timestamp:
		return int64(v)
	case codec.Char:
		return string(rune(v))
	case float32:
		return float64(v)
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		if v > math.MaxInt64 {
			return float64(v)
		}
		return int64(v)
	}
	return nil
}

// describeMessage tells a message with at most so many bytes of its body.
func describeMessage(d *engine.Delivery, bodyBytes int) Message {
	v, m := newView(d), d.Message
	p := v.props()
	told := Message{
		Number: d.Number, Priority: m.Priority, Durable: m.Durable, DeliveryCount: d.Count, Size: m.Size(),
		ArrivedAt: at(m.Arrived), ExpiresAt: at(min(m.Expiry, lastTime)),
		MessageID: plain(p.MessageID), CorrelationID: plain(p.CorrelationID),
		To: p.To.Value, Subject: p.Subject.Value, ReplyTo: p.ReplyTo.Value,
		ContentType: string(p.ContentType.Value), GroupID: p.GroupID.Value,
	}
	if p.CreationTime.Set {
		told.CreatedAt = at(int64(p.CreationTime.Value))
	}
	told.Annotations, told.ApplicationProperties = object(v.annotations()), object(v.application())
	told.DeathReason, _ = told.Annotations[engine.DeathReason].(string)
	told.OriginalAddress, _ = told.Annotations[engine.OrigAddress].(string)
	told.OriginalQueue, _ = told.Annotations[engine.OrigQueue].(string)
	if when, ok := find(v.annotations(), engine.ActualExpiry).(int64); ok {
		told.ExpiredAt = at(when)
	}
	if when, ok := find(v.annotations(), engine.DeathTime).(int64); ok {
		told.DiedAt = at(when)
	}
	v.body(&told, bodyBytes)
	if v.err != nil {
		told.Malformed = v.err.Error()
	}
	return told
}

// lastTime is the end of the year 9999, the last that RFC 3339 knows, in unix milliseconds.
const lastTime = 253402300799999

// at returns a unix millisecond, or nil for none.
func at(millis int64) *time.Time {
	if millis <= 0 || millis > lastTime {
		return nil
	}
	return new(time.UnixMilli(millis).UTC())
}

// maxStructured bounds the bytes of a body that is taken apart to be told.
const maxStructured = 1 << 20

// body tells the body. Data sections are joined.
func (v *view) body(told *Message, limit int) {
	rest := v.sections.Body
	if limit == 0 || len(rest) == 0 {
		told.Truncated = len(rest) > 0
		return
	}
	var data []byte
	var values []any
	isData := false
	for len(rest) > 0 {
		code, value, err := codec.ReadDescriptor(rest)
		if err != nil {
			v.fail(err)
			return
		}
		if code != codec.CodeData && len(rest) > maxStructured {
			told.Truncated = true
			return
		}
		if code == codec.CodeData && len(data) > limit {
			break
		}
		var decoded any
		if decoded, rest, err = codec.ReadValue(value); err != nil {
			v.fail(err)
			return
		}
		if bytes, ok := decoded.([]byte); ok && code == codec.CodeData {
			isData = true
			data = append(data, bytes[:min(len(bytes), limit+1)]...)
			continue
		}
		values = append(values, decoded)
	}
	var value any = values
	switch {
	case isData:
		value = data
	case len(values) == 1:
		value = values[0]
	}
	switch known := value.(type) {
	case []byte:
		told.Truncated = len(known) > limit
		known = known[:min(len(known), limit)]
		if text := trimmed(known); utf8.Valid(text) {
			told.Body = string(text)
		} else {
			told.BodyBase64 = base64.StdEncoding.EncodeToString(known)
		}
	case string:
		told.Truncated = len(known) > limit
		told.Body = string(trimmed([]byte(known[:min(len(known), limit)])))
	default:
		shown := plain(value)
		if text, err := json.Marshal(shown); err != nil || len(text) > limit {
			told.Truncated = true
			return
		}
		told.Body = shown
	}
}

// trimmed cuts off the beginning of a character at the end of text that was cut.
func trimmed(text []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(text)); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

// object turns a map into one of JSON.
func object(m codec.Map) map[string]any {
	if len(m) == 0 {
		return nil
	}
	all := make(map[string]any, len(m))
	for _, pair := range m {
		all[fmt.Sprint(plain(pair.Key))] = plain(pair.Value)
	}
	return all
}

// plain turns an AMQP value into what JSON has: bytes become base64, and keys of maps text.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, string, int8, int16, int32, int64, uint8, uint16, uint32, uint64:
		return v
	case codec.Symbol:
		return string(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case codec.UUID:
		return plainUUID(v)
	case codec.Char:
		return string(rune(v))
	case codec.Timestamp:
		if when := at(int64(v)); when != nil {
			return when
		}
		return int64(v)
	case float32:
		return plainFloat(float64(v))
	case float64:
		return plainFloat(v)
	case codec.Map:
		return object(v)
	case codec.List:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case []any:
		return plain(codec.List(v))
	case codec.Described:
		return plain(v.Value)
	}
	return fmt.Sprint(v)
}

// plainFloat returns text where JSON has no number.
func plainFloat(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Sprint(f)
	}
	return f
}

func plainUUID(u codec.UUID) string {
	text := hex.EncodeToString(u[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
