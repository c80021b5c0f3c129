package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/Azure/go-amqp"
)

// printer writes one received message.
type printer func(out io.Writer, m *amqp.Message) error

// printText writes the body and a line end: text as it is, other values as JSON.
func printText(out io.Writer, m *amqp.Message) error {
	var err error
	switch body := body(m).(type) {
	case string:
		_, err = fmt.Fprintln(out, body)
	case []byte:
		_, err = fmt.Fprintf(out, "%s\n", body)
	default:
		var text []byte
		if text, err = json.Marshal(plain(body)); err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
	}
	return err
}

// record is a message as JSON. What the message doesn't have is left out.
type record struct {
	Body                  any            `json:"body"`
	BodyBase64            string         `json:"body_base64,omitempty"` // instead of body: bytes that are no text
	MessageID             any            `json:"message_id,omitempty"`
	CorrelationID         any            `json:"correlation_id,omitempty"`
	To                    *string        `json:"to,omitempty"`
	Subject               *string        `json:"subject,omitempty"`
	ReplyTo               *string        `json:"reply_to,omitempty"`
	ContentType           *string        `json:"content_type,omitempty"`
	GroupID               *string        `json:"group_id,omitempty"`
	GroupSequence         *uint32        `json:"group_sequence,omitempty"`
	CreationTime          *time.Time     `json:"creation_time,omitempty"`
	AbsoluteExpiryTime    *time.Time     `json:"absolute_expiry_time,omitempty"`
	Durable               bool           `json:"durable"`
	Priority              uint8          `json:"priority"`
	TTL                   int64          `json:"ttl_ms,omitempty"`
	FirstAcquirer         bool           `json:"first_acquirer"`
	DeliveryCount         uint32         `json:"delivery_count"`
	Annotations           map[string]any `json:"annotations,omitempty"`
	ApplicationProperties map[string]any `json:"application_properties,omitempty"`
}

// printJSON writes the whole message as an object on one line.
func printJSON(out io.Writer, m *amqp.Message) error {
	r := record{Priority: 4}
	switch body := body(m).(type) {
	case []byte:
		if utf8.Valid(body) {
			r.Body = string(body)
		} else {
			r.BodyBase64 = base64.StdEncoding.EncodeToString(body)
		}
	default:
		r.Body = plain(body)
	}
	if h := m.Header; h != nil {
		r.Durable, r.Priority, r.TTL = h.Durable, h.Priority, h.TTL.Milliseconds()
		r.FirstAcquirer, r.DeliveryCount = h.FirstAcquirer, h.DeliveryCount
	}
	if p := m.Properties; p != nil {
		r.MessageID, r.CorrelationID = plain(p.MessageID), plain(p.CorrelationID)
		r.To, r.Subject, r.ReplyTo, r.ContentType = p.To, p.Subject, p.ReplyTo, p.ContentType
		r.GroupID, r.GroupSequence = p.GroupID, p.GroupSequence
		r.CreationTime, r.AbsoluteExpiryTime = p.CreationTime, p.AbsoluteExpiryTime
	}
	if len(m.Annotations) > 0 {
		r.Annotations = plain(map[any]any(m.Annotations)).(map[string]any)
	}
	if len(m.ApplicationProperties) > 0 {
		r.ApplicationProperties = plain(m.ApplicationProperties).(map[string]any)
	}
	return json.NewEncoder(out).Encode(r)
}

// body joins data sections, and gives sequences as a list of lists.
func body(m *amqp.Message) any {
	switch {
	case m.Data != nil:
		var all []byte
		for _, section := range m.Data {
			all = append(all, section...)
		}
		if all == nil {
			all = []byte{}
		}
		return all
	case m.Sequence != nil:
		return m.Sequence
	}
	return m.Value
}

// plain turns AMQP values into what JSON has: bytes become base64, and map keys text.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case amqp.UUID:
		return v.String()
	case *amqp.UUID:
		return v.String()
	case amqp.Symbol:
		return string(v)
	case float32, float64:
		if _, err := json.Marshal(v); err != nil {
			return fmt.Sprint(v) // NaN and infinities have no JSON
		}
		return v
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case [][]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[any]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[fmt.Sprint(plain(key))] = plain(value)
		}
		return object
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[key] = plain(value)
		}
		return object
	case map[amqp.Symbol]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[string(key)] = plain(value)
		}
		return object
	case [16]byte:
		return hex.EncodeToString(v[:])
	}
	if _, err := json.Marshal(v); err != nil {
		return fmt.Sprint(v)
	}
	return v
}
