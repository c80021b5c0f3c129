package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/letomq/leto/codec"
	"github.com/letomq/leto/engine"
	"github.com/letomq/leto/store/memory"
)

// described is the OpenAPI document as a broker serves it.
type described struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
	Security   []any
}

type operation struct {
	OperationID string
	Summary     string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   schema
	}
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema schema }
	}
}

func readDocument(t *testing.T, at string) (d described) {
	t.Helper()
	answer, body := do(t, "GET", at+"/api/v1/openapi.json", func(r *http.Request) { r.SetBasicAuth("ann", "") })
	if err := json.Unmarshal([]byte(body), &d); err != nil || answer.StatusCode != 200 || d.OpenAPI != "3.1.0" {
		t.Fatalf("%d %v: %.300s", answer.StatusCode, err, body)
	}
	return d
}

// each calls f with every operation.
func (d described) each(f func(method, path string, o operation)) {
	for path, methods := range d.Paths {
		for method, o := range methods {
			f(strings.ToUpper(method), path, o)
		}
	}
}

// conforms says what of a value isn't as its schema says; fields that no schema knows are wrong, too. It knows what
// this document uses of JSON schema.
func (d described) conforms(where string, v any, s schema) []string {
	if ref, ok := s["$ref"].(string); ok {
		name, _ := strings.CutPrefix(ref, "#/components/schemas/")
		known := d.Components.Schemas[name]
		if known == nil {
			return []string{ref + " leads nowhere"}
		}
		return d.conforms(where, v, known)
	}
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, where+": "+fmt.Sprintf(format, args...)) }
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, v) {
		bad("%v is none of %v", v, words)
	}
	switch s["type"] {
	case nil:
	case "string":
		text, ok := v.(string)
		if !ok {
			bad("%v is no string", v)
		}
		if s["format"] == "date-time" {
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				bad("%v", err)
			}
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			bad("%v is no boolean", v)
		}
	case "integer":
		n, ok := v.(json.Number)
		if i, err := n.Int64(); !ok || err != nil {
			bad("%v is no integer", v)
		} else if least, ok := s["minimum"].(float64); ok && float64(i) < least {
			bad("%d is less than %v", i, least)
		}
	case "array":
		items, ok := v.([]any)
		if !ok {
			bad("%v is no array", v)
		}
		for i, item := range items {
			wrong = append(wrong, d.conforms(fmt.Sprintf("%s[%d]", where, i), item, s["items"].(schema))...)
		}
	case "object":
		fields, ok := v.(map[string]any)
		if !ok {
			bad("%v is no object", v)
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, there := fields[name.(string)]; !there {
				bad("%v is missing", name)
			}
		}
		properties, _ := s["properties"].(schema)
		for name, field := range fields {
			property, known := properties[name].(schema)
			if !known {
				property, known = s["additionalProperties"].(schema)
			}
			if !known {
				bad("%s isn't described", name)
				continue
			}
			wrong = append(wrong, d.conforms(where+"."+name, field, property)...)
		}
	default:
		bad("the schema's type is %v", s["type"])
	}
	return wrong
}

// check says what of an answer isn't as the document says.
func (d described) check(o operation, answer *http.Response, body []byte) []string {
	where := fmt.Sprintf("%s %s: %d", answer.Request.Method, answer.Request.URL.Path, answer.StatusCode)
	reply, known := o.Responses[strconv.Itoa(answer.StatusCode)]
	if !known {
		return []string{where + " isn't described: " + string(body)}
	}
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if len(reply.Content) == 0 {
		if len(body) > 0 {
			return []string{where + ": there is a body"}
		}
		return nil
	}
	content, known := reply.Content[media]
	switch {
	case !known:
		return []string{where + ": " + media + " isn't described"}
	case media == ProgressType:
		var wrong []string
		for line := range strings.Lines(string(body)) {
			wrong = append(wrong, d.checkJSON(where, line, content.Schema)...)
		}
		return wrong
	case media == "application/json" || media == problemType:
		return d.checkJSON(where, string(body), content.Schema)
	}
	return nil
}

func (d described) checkJSON(where, text string, s schema) []string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return []string{fmt.Sprintf("%s: %v in %q", where, err, text)}
	}
	return d.conforms(where, v, s)
}

// describedWorld is a broker with something of everything, its document and what of that has been seen.
type describedWorld struct {
	*api
	described
	seen map[string]bool // METHOD PATH STATUS MEDIA
}

func newDescribedWorld(t *testing.T, change func(*Options)) *describedWorld {
	b, err := engine.New(engine.Options{Settings: []engine.AddressSettings{{Match: "closed.#", AutoCreateAddresses: new(false)}}}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	o := options()
	o.Broker = b
	o.Store = exportedStore{export: func(w io.Writer) error {
		_, err := io.WriteString(w, "all")
		return err
	}}
	if change != nil {
		change(&o)
	}
	a := &api{b, t, "http://" + start(t, o)}
	return &describedWorld{api: a, described: readDocument(t, a.at), seen: map[string]bool{}}
}

// call sends a request to a path of the document, with its parameters filled in, and checks the answer against it.
func (w *describedWorld) call(method, path, query, body string, want int, headers ...string) []byte {
	w.t.Helper()
	o, known := w.Paths[path][strings.ToLower(method)]
	if !known {
		w.t.Fatalf("%s %s isn't described", method, path)
	}
	name := "q"
	if before, after, ok := strings.Cut(query, " "); ok { // NAME QUERY
		name, query = before, after
	}
	r, err := http.NewRequest(method, w.at+strings.NewReplacer("{queue}", name, "{address}", name).Replace(path)+query, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(answer.Body))
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode != want {
		w.t.Errorf("%s %s %s %s: %d, want %d: %s", method, path, query, body, answer.StatusCode, want, text)
	}
	for _, wrong := range w.check(o, answer, text) {
		w.t.Error(wrong)
	}
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	w.seen[fmt.Sprintf("%s %s %d %s", method, path, answer.StatusCode, media)] = true
	return text
}

// everyMessage puts messages with every field into q, and one into DLQ.
func (w *describedWorld) everyMessage() {
	w.publish("q", encode(w.t, value("dead")))
	w.reject("q", 1, "why")
	body := func(more ...func([]byte) ([]byte, error)) []byte { return encode(w.t, more...) }
	w.publish("q", body(value("text")), body(data("\xff\xfe")), body(value(codec.Map{{Key: "a", Value: codec.List{int32(1), 1.5, true, nil}}})),
		[]byte("\x00\x53\x75nothing"), body(
			annotations(codec.Map{{Key: codec.Symbol("x-a"), Value: codec.Timestamp(1)}}),
			properties(codec.Properties{
				MessageID: "m", CorrelationID: uint64(7), To: codec.Some("t"), Subject: codec.Some("s"), ReplyTo: codec.Some("r"),
				ContentType: codec.Some(codec.Symbol("text/plain")), GroupID: codec.Some("g"), CreationTime: codec.Some(codec.Timestamp(1e12)),
			}),
			custom(codec.Map{{Key: "n", Value: int64(1)}}), data("some text"),
		))
}

// TestEverythingServedIsDescribed: the table that is served is the document that is served.
func TestEverythingServedIsDescribed(t *testing.T) {
	o := options()
	d := readDocument(t, "http://"+start(t, o))
	ids := map[string]bool{}
	d.each(func(method, path string, o operation) {
		if o.OperationID == "" || ids[o.OperationID] || o.Summary == "" || len(o.Responses) == 0 {
			t.Errorf("%s %s: %+v", method, path, o)
		}
		ids[o.OperationID] = true
		for _, name := range []string{"queue", "address"} {
			given := slices.ContainsFunc(o.Parameters, func(p struct {
				Name, In string
				Required bool
				Schema   schema
			}) bool {
				return p.Name == name && p.In == "path" && p.Required
			})
			if given != strings.Contains(path, "{"+name+"}") {
				t.Errorf("%s %s: parameter %s: %v", method, path, name, given)
			}
		}
	})
	all := table(o, t.Context(), http.NotFoundHandler())
	for _, r := range all {
		if r.handler == nil {
			t.Errorf("%s does nothing", r.pattern())
		}
		if _, there := d.Paths[r.path][strings.ToLower(r.method)]; !there {
			t.Errorf("%s isn't described", r.pattern())
		}
	}
	if want := len(all) + 2; len(ids) != want { // with the index, and the document itself
		t.Errorf("%d operations, want %d", len(ids), want)
	}
}

// TestEverythingDescribedIsSo calls every operation in every way that its description knows of, and holds the answers
// against that. What a broker can't be brought to here is named.
func TestEverythingDescribedIsSo(t *testing.T) {
	w := newDescribedWorld(t, nil)
	const queues, queue, addresses, address = "/api/v1/queues", "/api/v1/queues/{queue}", "/api/v1/addresses", "/api/v1/addresses/{address}"
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/", "/api/v1/openapi.json"} {
		w.call("GET", path, "", "", 200)
	}
	w.call("GET", "/livez", "", "", 200, "Accept", "application/json")
	w.call("GET", "/readyz", "", "", 200, "Accept", "application/json")

	w.call("PUT", queue, "", `{}`, 201)
	w.call("PUT", queue, "", `{"routing":"anycast"}`, 200)
	w.call("PUT", queue, "", `{"routing":"multicast"}`, 409)
	w.call("PUT", address, "news ", `{"routing":"multicast"}`, 201)
	w.call("PUT", address, "news ", `{}`, 200)
	w.call("PUT", address, "news ", `{"routing":"anycast"}`, 409)
	w.call("PUT", address, "news ", `{"routing":"all"}`, 400)
	w.everyMessage()
	w.call("GET", queues, "", "", 200)
	w.call("GET", queue, "", "", 200)
	w.call("GET", queue+"/messages", "?count=2&body_bytes=3&filter=true", "", 200)
	w.call("GET", queue+"/messages", "DLQ ", "", 200)
	w.call("GET", queue+"/messages", "none ", "", 404)
	for _, bad := range []string{"count=0", "count=many", "body_bytes=-1", "after=there", "filter=(", "cuont=1", "a;b=c"} {
		w.call("GET", queue+"/messages", "?"+bad, "", 400)
	}
	w.call("GET", addresses, "", "", 200)
	w.call("GET", address, "", "", 200)
	w.call("GET", address, "none ", "", 404)
	w.call("GET", address+"/settings", "none ", "", 200)
	w.call("GET", queue, "none ", "", 404)
	for _, act := range []string{"pause", "resume"} {
		w.call("POST", queue+"/"+act, "", `{}`, 200)
		w.call("POST", queue+"/"+act, "none ", `{}`, 404)
	}
	w.call("POST", queue+"/move", "", `{"to":"elsewhere","count":1}`, 200)
	w.call("POST", queue+"/move", "", `{"to":"closed.x"}`, 404)
	w.call("POST", queue+"/move", "", `{}`, 400)
	w.call("POST", queue+"/retry", "DLQ ", `{"filter":"JMSPriority = 4"}`, 200)
	for _, act := range []string{"purge", "move", "retry"} {
		to := ""
		if act == "move" {
			to = `,"to":"x"`
		}
		w.call("POST", queue+"/"+act, "none ", `{"count":7`+to+`}`, 404)
		w.call("POST", queue+"/"+act, "q:: ", `{`+strings.TrimPrefix(to, ",")+`}`, 400)
		w.call("POST", queue+"/"+act, "", `{"count":0`+to+`}`, 400)
		w.call("POST", queue+"/"+act, "", `{"filter":""`+to+`}`, 400)
		w.call("POST", queue+"/"+act, "", `{"count":-1`+to+`}`, 400)
		w.call("POST", queue+"/"+act, "elsewhere ", `{"count":1`+to+`}`, 200, "Accept", ProgressType)
		w.call("POST", queue+"/"+act, "", `{"count":1`+to+`}`, 200)
	}
	w.publishLater("q", 3)
	w.call("GET", queue+"/scheduled", "?count=2&body_bytes=3&filter=true", "", 200)
	w.call("GET", queue+"/scheduled", "none ", "", 404)
	for _, bad := range []string{"count=0", "body_bytes=-1", "after=there", "after=1", "after=1-4", "after=-1-4-1", "filter=("} {
		w.call("GET", queue+"/scheduled", "?"+bad, "", 400)
	}
	for _, act := range []string{"/scheduled/deliver", "/scheduled/cancel"} {
		w.call("POST", queue+act, "none ", `{}`, 404)
		for _, bad := range []string{`{"count":0}`, `{"filter":""}`, `{"filter":"("}`, `{"number":0}`, `{"number":-1}`, `{"to":"x"}`} {
			w.call("POST", queue+act, "", bad, 400)
		}
		w.call("POST", queue+act, "", `{"count":1}`, 200, "Accept", ProgressType)
		w.call("POST", queue+act, "", `{"number":1}`, 200)
	}
	w.call("POST", queue+"/move", "", `{"to":"topic://q"}`, 409)
	w.call("DELETE", queue, "?if_empty=true", "", 409)
	w.call("DELETE", queue, "?if_unused=maybe", "", 400)
	w.call("DELETE", queue, "", "", 204)
	w.call("DELETE", queue, "", "", 404)
	w.call("DELETE", address, "elsewhere ?if_empty=true&if_unused=true", "", 204)
	w.call("DELETE", address, "elsewhere ", "", 404)
	w.call("DELETE", address, "DLQ ?if_empty=maybe", "", 400)
	w.call("PUT", address, "busy ", `{}`, 201)
	p, err := w.Producer(engine.ProducerSpec{Address: "busy"}, ignoreConfirms{})
	if err != nil {
		t.Fatal(err)
	}
	w.call("DELETE", address, "busy ?if_unused=true", "", 409)
	p.Close()
	w.call("GET", "/api/v1/store/export", "", "", 200)

	// What every operation has in common.
	w.each(func(method, path string, o operation) {
		if !strings.HasPrefix(path, "/api/") {
			return
		}
		body := ""
		if o.RequestBody != nil {
			body = `{}`
			w.call(method, path, "", `{"nonsense":1}`, 400)
			w.call(method, path, "", body, 415, "Content-Type", "text/plain")
			for name := range w.deref(o.RequestBody.Content["application/json"].Schema)["properties"].(schema) {
				if said := w.call(method, path, "", `{"`+name+`":[]}`, 400); strings.Contains(string(said), "unknown field") {
					t.Errorf("%s %s: %s is described and not known", method, path, name)
				}
			}
		}
		w.call(method, path, "?nonsense=1", body, 400)
		w.call(method, path, "", body, 421, "Host", "evil.example")
		if method != "GET" {
			w.call(method, path, "", body, 403, "Sec-Fetch-Site", "cross-site")
		}
		for _, p := range o.Parameters {
			if p.In == "query" && p.Schema["type"] != "string" {
				w.call(method, path, "?"+p.Name+"=x", body, 400)
			}
		}
	})

	other := newDescribedWorld(t, func(o *Options) { // nobody is let in without a name
		o.Store = nil
		o.Ready = func() error { return engine.ErrClosed }
		o.Verify = func(user, password string) bool { return user == "ann" }
	})
	other.each(func(method, path string, o operation) {
		if strings.HasPrefix(path, "/api/") || path == "/metrics" {
			body := ""
			if o.RequestBody != nil {
				body = `{}`
			}
			other.call(method, path, "", body, 401)
		}
	})
	other.call("GET", "/readyz", "", "", 503)
	other.call("GET", "/readyz", "", "", 503, "Accept", "application/json")
	other.call("GET", "/api/v1/store/export", "", "", 404, "Authorization", "Basic YW5uOg==")

	for _, all := range []*describedWorld{w, other} {
		all.each(func(method, path string, o operation) {
			for status, reply := range o.Responses {
				for media := range reply.Content {
					way := method + " " + path + " " + status + " " + media
					if !w.seen[way] && !other.seen[way] && !unseen(status, media) {
						t.Errorf("not seen: %s", way)
					}
				}
			}
		})
	}
}

// unseen reports whether an answer is one that this broker isn't brought to: it has room, and isn't stopped.
func unseen(status, media string) bool {
	return status == "default" || status == "503" && media != "text/plain" || status == "507" || status >= "400" && media == "application/json"
}

// deref returns a schema without a detour.
func (d described) deref(s schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		return d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
	return s
}
