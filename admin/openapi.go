package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// schema is a JSON schema, as OpenAPI 3.1 has it (draft 2020-12).
type schema = map[string]any

const problemType = "application/problem+json"

// document describes routes as OpenAPI has it: https://spec.openapis.org/oas/v3.1.0. Types are described by what
// encoding/json makes of them, and by their doc tags.
func document(o Options, routes []route) ([]byte, error) {
	types := schemas{}
	paths := map[string]any{}
	for _, r := range routes {
		at, _ := paths[r.path].(map[string]any)
		if at == nil {
			at = map[string]any{}
			paths[r.path] = at
		}
		at[strings.ToLower(r.method)] = r.describe(o, types)
	}
	components := map[string]any{"schemas": map[string]any(types)}
	d := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "leto", "version": o.Version,
			"description": "Health, metrics and administration of a leto broker. Names of addresses and queues in paths are percent-encoded. " +
				"Whoever reads an answer should pass over fields that it doesn't know: later versions add some.",
		},
		"paths": paths, "components": components,
	}
	if o.Verify != nil {
		components["securitySchemes"] = map[string]any{"basic": map[string]any{"type": "http", "scheme": "basic"}}
		d["security"] = []any{map[string]any{"basic": []string{}}}
	}
	return json.MarshalIndent(d, "", "  ")
}

// pathParameters are what may stand in a path.
var pathParameters = map[string]string{
	"queue":   "NAME, of the queue and its address, or ADDRESS::QUEUE",
	"address": "the address's name",
}

// describe returns the operation of a route, and puts the types that it knows into types.
func (r route) describe(o Options, types schemas) map[string]any {
	parameters := []any{}
	for name, does := range pathParameters {
		if strings.Contains(r.path, "{"+name+"}") {
			parameters = append(parameters, map[string]any{
				"name": name, "in": "path", "required": true, "description": does, "schema": schema{"type": "string", "minLength": 1},
			})
		}
	}
	for _, p := range r.query {
		parameters = append(parameters, map[string]any{"name": p.name, "in": "query", "description": p.does, "schema": p.schema})
	}
	contents := func(all []content) map[string]any {
		described := map[string]any{}
		for _, c := range all {
			described[c.media] = map[string]any{"schema": types.of(c.value)}
		}
		return described
	}
	responses := map[string]any{}
	for _, a := range r.answers {
		answer := map[string]any{"description": a.does}
		if len(a.content) > 0 {
			answer["content"] = contents(a.content)
		}
		responses[strconv.Itoa(a.status)] = answer
	}
	failure := []content{{problemType, problemDetails{}}}
	if r.partly {
		failure = append(failure, content{"application/json", Progress{}})
	}
	for _, status := range r.problems(o) {
		responses[strconv.Itoa(status)] = map[string]any{"description": http.StatusText(status), "content": contents(failure)}
	}
	if !r.open {
		responses["default"] = map[string]any{"description": "any other failure", "content": contents(failure)}
	}
	operation := map[string]any{"operationId": r.id, "summary": r.does, "responses": responses}
	if r.more != "" {
		operation["description"] = r.more
	}
	if len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if r.body != nil {
		operation["requestBody"] = map[string]any{"required": true, "content": contents(jsonOf(r.body))}
	}
	if r.open && o.Verify != nil {
		operation["security"] = []any{}
	}
	return operation
}

// schemas are the types that have a name, by it.
type schemas map[string]any

// of returns the schema of what a value's type becomes as JSON; nil is text.
func (s schemas) of(v any) schema {
	if v == nil {
		return schema{"type": "string"}
	}
	return s.ofType(reflect.TypeOf(v))
}

func (s schemas) ofType(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return s.ofType(t.Elem())
	case t.Kind() == reflect.Interface:
		return schema{} // anything
	case t.Kind() == reflect.String:
		return schema{"type": "string"}
	case t.Kind() == reflect.Bool:
		return schema{"type": "boolean"}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return schema{"type": "integer"}
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case t.Kind() == reflect.Slice:
		return schema{"type": "array", "items": s.ofType(t.Elem())}
	case t.Kind() == reflect.Map:
		return schema{"type": "object", "additionalProperties": s.ofType(t.Elem())}
	case t.Kind() == reflect.Struct && t.Name() == "":
		return s.ofStruct(t)
	case t.Kind() == reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if s[name] == nil {
			s[name] = schema{} // it may hold itself
			s[name] = s.ofStruct(t)
		}
		return schema{"$ref": "#/components/schemas/" + name}
	}
	panic(fmt.Sprintf("admin: no schema for %s", t))
}

// ofStruct returns the schema of an object; what its doc tags say of a field goes with it.
func (s schemas) ofStruct(t reflect.Type) schema {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			inner := s.ofStruct(field.Type)
			maps.Copy(properties, inner["properties"].(map[string]any))
			if more, ok := inner["required"].([]string); ok {
				required = append(required, more...)
			}
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.ofType(field.Type)
		if does := field.Tag.Get("doc"); does != "" {
			property["description"] = does // beside a $ref, too, since 3.1
		}
		if words := field.Tag.Get("enum"); words != "" {
			property["enum"] = strings.Split(words, "|")
		}
		properties[name] = property
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	described := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		described["required"] = required
	}
	return described
}
