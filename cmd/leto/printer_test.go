package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

func TestPrinters(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name       string
		message    amqp.Message
		text, json string
	}{
		{"string", amqp.Message{Value: "hi <&>"}, "hi <&>",
			`{"body":"hi \u003c\u0026\u003e","durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"data in parts", amqp.Message{Data: [][]byte{[]byte("ab"), []byte("c")}}, "abc",
			`{"body":"abc","durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"bytes that are no text", amqp.Message{Data: [][]byte{{0xff, 0}}}, "\xff\x00",
			`{"body":null,"body_base64":"/wA=","durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"map", amqp.Message{Value: map[string]any{"b": int64(1), "a": []byte{1}}}, `{"a":"AQ==","b":1}`,
			`{"body":{"a":"AQ==","b":1},"durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"map with other keys", amqp.Message{Value: map[any]any{int32(7): amqp.Symbol("s")}}, `{"7":"s"}`,
			`{"body":{"7":"s"},"durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"number without JSON", amqp.Message{Value: []any{math.NaN(), 1.5, nil}}, `["NaN",1.5,null]`,
			`{"body":["NaN",1.5,null],"durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"sequences", amqp.Message{Sequence: [][]any{{int32(1)}, {"x"}}}, `[[1],["x"]]`,
			`{"body":[[1],["x"]],"durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"no body", amqp.Message{}, "null",
			`{"body":null,"durable":false,"priority":4,"first_acquirer":false,"delivery_count":0}`},
		{"everything", amqp.Message{
			Value:       "x",
			Header:      &amqp.MessageHeader{Durable: true, Priority: 9, TTL: 1500 * time.Millisecond, FirstAcquirer: true, DeliveryCount: 2},
			Annotations: amqp.Annotations{"x-opt-a": "b"},
			Properties: &amqp.MessageProperties{MessageID: "m", CorrelationID: uint64(7), To: new("t"), Subject: new("s"), ReplyTo: new("r"),
				ContentType: new("text/plain"), GroupID: new("g"), GroupSequence: new(uint32(3)), CreationTime: &when, AbsoluteExpiryTime: &when},
			ApplicationProperties: map[string]any{"n": int32(5), "when": when},
		}, "x", `{"body":"x","message_id":"m","correlation_id":7,"to":"t","subject":"s","reply_to":"r","content_type":"text/plain",` +
			`"group_id":"g","group_sequence":3,"creation_time":"2026-01-02T03:04:05Z","absolute_expiry_time":"2026-01-02T03:04:05Z",` +
			`"durable":true,"priority":9,"ttl_ms":1500,"first_acquirer":true,"delivery_count":2,` +
			`"annotations":{"x-opt-a":"b"},"application_properties":{"n":5,"when":"2026-01-02T03:04:05Z"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text, json strings.Builder
			if err := printText(&text, &c.message); err != nil || text.String() != c.text+"\n" {
				t.Errorf("text: %q, %v; want %q", text.String(), err, c.text)
			}
			if err := printJSON(&json, &c.message); err != nil || json.String() != c.json+"\n" {
				t.Errorf("json: %s, %v; want %s", json.String(), err, c.json)
			}
		})
	}
}

func TestParseProperty(t *testing.T) {
	for text, want := range map[string]struct {
		key   string
		value any
	}{
		"a=1":           {"a", "1"},
		"a=b=c":         {"a", "b=c"},
		"a=":            {"a", ""},
		"a:int=-5":      {"a", int32(-5)},
		"a:long=5":      {"a", int64(5)},
		"a:double=1.5":  {"a", 1.5},
		"a:bool=true":   {"a", true},
		"urn:x=1":       {"urn:x", "1"}, // no type's name
		"urn:x:int=1":   {"urn:x", int32(1)},
		":int=1":        {":int", "1"},
		"text=a,b":      {"text", "a,b"},
		"umlaut=größer": {"umlaut", "größer"},
	} {
		key, value, err := parseProperty(text)
		if err != nil || key != want.key || value != want.value {
			t.Errorf("%q: %q = %v (%T), %v", text, key, value, value, err)
		}
	}
	for _, text := range []string{"", "a", "=1", "a:int=x", "a:int=3000000000", "a:bool=maybe"} {
		if key, value, err := parseProperty(text); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q was read as %q = %v, %v", text, key, value, err)
		}
	}
}
