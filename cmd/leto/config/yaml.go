package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML turns one YAML document into a tree. source names it in every Origin.
func parseYAML(source string, text []byte) (*tree, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(source, err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return &tree{at: Origin{Source: source}}, nil
	case 1:
		return fromNode(source, bodies[0])
	}
	return nil, &Error{At: position(source, bodies[1].GetToken()), Text: "a second document; one is read"}
}

func syntaxError(source string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) {
		return &Error{At: position(source, at.GetToken()), Text: at.GetMessage()}
	}
	return &Error{At: Origin{Source: source}, Text: err.Error()}
}

func position(source string, tk *token.Token) Origin {
	if tk == nil || tk.Position == nil {
		return Origin{Source: source}
	}
	return Origin{source, tk.Position.Line, tk.Position.Column}
}

func fromNode(source string, node ast.Node) (*tree, error) {
	at := position(source, node.GetToken())
	switch n := node.(type) {
	case ast.MapNode:
		t := &tree{kind: mapping, at: at}
		for pairs := n.MapRange(); pairs.Next(); {
			key := pairs.Key().GetToken()
			if pairs.Key().IsMergeKey() {
				return nil, &Error{At: position(source, key), Text: "merge keys are not supported"}
			}
			if t.get(key.Value) != nil {
				return nil, &Error{At: position(source, key), Text: fmt.Sprintf("key %q stands twice", key.Value)}
			}
			value, err := fromNode(source, pairs.Value())
			if err != nil {
				return nil, err
			}
			if value.kind == null {
				value.at = position(source, key) // nothing has no place of its own
			}
			t.keys = append(t.keys, entry{key.Value, position(source, key), value})
		}
		if len(t.keys) > 0 && at.Line != 0 {
			t.at = t.keys[0].at // the node's own token is the colon
		}
		return t, nil
	case *ast.SequenceNode:
		t := &tree{kind: list, at: at}
		for _, item := range n.Values {
			value, err := fromNode(source, item)
			if err != nil {
				return nil, err
			}
			t.values = append(t.values, value)
		}
		return t, nil
	case *ast.NullNode:
		return &tree{kind: null, at: at}, nil
	case *ast.StringNode:
		return &tree{kind: scalar, at: at, text: n.Value}, nil
	case *ast.LiteralNode:
		return &tree{kind: scalar, at: at, text: strings.TrimSuffix(n.Value.Value, "\n")}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &tree{kind: scalar, at: at, text: node.GetToken().Value}, nil
	}
	return nil, &Error{At: at, Text: fmt.Sprintf("%s is not supported here", node.Type().YAMLName())}
}
