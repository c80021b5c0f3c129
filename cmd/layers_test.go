// Package cmd_test checks the shape of the project: imports point downwards, and machines touch
// neither clock nor socket. It parses the files itself, since a test that asked the go command
// would be taken from the cache although an import had changed.
package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/letomq/leto/"

// layer is a folder whose packages play one role.
type layer struct {
	folder  string
	imports []string // layers it may import, besides itself
	rules   rule
}

// rule says what the packages of a layer must leave to others.
type rule uint8

const (
	noSystem     rule = 1 << iota // no net, os or syscall: bytes come in as arguments
	noClock                       // doesn't ask what time it is: time comes in as an argument
	noGoroutines                  // starts none and sets no timer
	alsoTests                     // test files keep to imports as well

	machine = noSystem | noClock | noGoroutines
)

// layers is the picture of the design, from the bottom up. The longest folder that fits a package is its layer.
var layers = []layer{
	{"codec", nil, machine},
	{"amqp", []string{"codec"}, machine},
	{"engine/queue", nil, machine},
	{"engine", []string{"engine/queue"}, noSystem | noClock},
	{"amqp/server", []string{"amqp", "codec", "engine", "engine/queue"}, 0},
	{"store", []string{"engine", "engine/queue"}, 0},
	{"ha", []string{"engine", "engine/queue", "store"}, 0},
	{"cluster", []string{"engine", "engine/queue", "store", "ha", "amqp", "codec", "amqp/server"}, 0},
	{"admin", []string{"codec", "engine", "engine/queue", "store", "ha", "cluster", "amqp/server"}, 0},
	{"cmd", []string{"codec", "amqp", "amqp/server", "engine", "engine/queue", "store", "ha", "cluster", "admin"}, 0},
	{"interop", nil, alsoTests},                                                              // drives the binary from outside
	{"interop/powerloss", []string{"interop", "store", "engine", "engine/queue"}, alsoTests}, // besides it the store alone
}

func layerOf(pkg string) *layer {
	var found *layer
	for i, l := range layers {
		if (pkg == l.folder || strings.HasPrefix(pkg, l.folder+"/")) && (found == nil || len(l.folder) > len(found.folder)) {
			found = &layers[i]
		}
	}
	return found
}

// dustbins are names that say nothing about what lies in them.
var dustbins = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

// violations reports what a source file does that its layer must not. name is its path from the module's root.
func violations(name string, source []byte) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	pkg := path.Dir(name)
	own := layerOf(pkg)
	if own == nil {
		return []string{fmt.Sprintf("%s: %s is not one of the agreed folders", name, pkg)}, nil
	}
	var found []string
	report := func(at token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", set.Position(at), fmt.Sprintf(format, args...)))
	}
	for step := range strings.SplitSeq(pkg, "/") {
		if slices.Contains(dustbins, step) {
			report(file.Package, "%q says nothing about what lies there", step)
		}
	}
	rules := own.rules
	if strings.HasSuffix(pkg, "test") {
		rules &^= machine // amqptest and its like drive machines for tests, from files and with clocks
	}
	test := strings.HasSuffix(name, "_test.go")
	if test && rules&alsoTests == 0 {
		return found, nil
	}

	clock := "" // what the file calls package time
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if imported == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
		if root, _, _ := strings.Cut(imported, "/"); rules&noSystem != 0 && slices.Contains([]string{"net", "os", "syscall"}, root) {
			report(spec.Pos(), "imports %s: %s gets bytes and gives bytes", imported, own.folder)
		}
		if rest, ours := strings.CutPrefix(imported, module); ours {
			to := layerOf(rest)
			if to == nil || to != own && !slices.Contains(own.imports, to.folder) {
				report(spec.Pos(), "imports %s: %s may import %v", rest, own.folder, own.imports)
			}
		}
	}
	if test {
		return found, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if rules&noGoroutines != 0 {
				report(n.Pos(), "starts a goroutine: %s is driven by its caller", own.folder)
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if x, ok := f.X.(*ast.Ident); !ok || clock == "" || x.Name != clock {
				break
			}
			switch f.Sel.Name {
			case "Now", "Since", "Until":
				if rules&noClock != 0 {
					report(n.Pos(), "calls time.%s: %s is told what time it is", f.Sel.Name, own.folder)
				}
			case "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
				if rules&noGoroutines != 0 {
					report(n.Pos(), "calls time.%s: %s is driven by its caller", f.Sel.Name, own.folder)
				}
			}
		}
		return true
	})
	return found, nil
}

func TestLayers(t *testing.T) {
	read := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != ".." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", name)
		if err != nil {
			return err
		}
		read++
		found, err := violations(filepath.ToSlash(rel), source)
		for _, v := range found {
			t.Error(v)
		}
		return err
	})
	if err != nil || read == 0 {
		t.Fatalf("%d files read: %v", read, err)
	}
}

// TestLayersNoticePlantedFaults holds the check itself: each of these must be found, and the last few must not.
func TestLayersNoticePlantedFaults(t *testing.T) {
	const head = "package p\n"
	for _, c := range []struct {
		name, source string
		faults       int
	}{
		{"codec/a.go", head + `import _ "github.com/letomq/leto/amqp"`, 1},
		{"amqp/a.go", head + `import _ "github.com/letomq/leto/engine"`, 1},
		{"amqp/a.go", head + `import _ "github.com/letomq/leto/amqp/server"`, 1},
		{"amqp/deeper/a.go", head + `import _ "github.com/letomq/leto/engine"`, 1},
		{"engine/a.go", head + `import _ "github.com/letomq/leto/codec"`, 1},
		{"engine/queue/a.go", head + `import _ "github.com/letomq/leto/engine"`, 1},
		{"store/memory/a.go", head + `import _ "github.com/letomq/leto/amqp/server"`, 1},
		{"admin/a.go", head + `import _ "github.com/letomq/leto/amqp"`, 1},
		{"interop/raw/a_test.go", head + `import _ "github.com/letomq/leto/codec"`, 1},
		{"cmd/leto/a.go", head + `import _ "github.com/letomq/leto/interop/harness"`, 1},
		{"codec/a.go", head + `import _ "github.com/letomq/leto/elsewhere"`, 1},
		{"util/a.go", head, 1},
		{"engine/helpers/a.go", head, 1},
		{"engine/a.go", head + `import _ "net"`, 1},
		{"amqp/a.go", head + `import _ "net/netip"`, 1},
		{"codec/a.go", head + `import _ "os"`, 1},
		{"engine/a.go", head + `import "time"; var _ = time.Now()`, 1},
		{"engine/a.go", head + `import clock "time"; var _ = clock.Since(clock.Time{})`, 1},
		{"amqp/a.go", head + `import "time"; func f() { time.Sleep(1) }`, 1},
		{"engine/queue/a.go", head + `func f() { go f() }`, 1},
		{"engine/a.go", head + `func f() { go f() }`, 0},
		{"amqp/amqptest/a.go", head + `import _ "os"`, 0},
		{"amqp/amqptest/a.go", head + `import _ "github.com/letomq/leto/engine"`, 1},
		{"engine/a.go", head + `import "time"; var now = time.Now`, 0},
		{"amqp/server/a.go", head + `import ("net"; "time"; "github.com/letomq/leto/engine"); var _ = time.Now; var _ net.Conn; var _ engine.Options`, 0},
		{"codec/a_test.go", head + `import _ "os"`, 0},
	} {
		found, err := violations(c.name, []byte(c.source))
		if err != nil || len(found) != c.faults {
			t.Errorf("%s with %q: %v, %v; want %d", c.name, strings.TrimPrefix(c.source, head), found, err, c.faults)
		}
	}
}
