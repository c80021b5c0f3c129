package cmd_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The check of docs/cases.md: which cases have tests is read from the tests, so the page can't say what isn't so.

const casesPage = "../docs/cases.md"

var updateCases = flag.Bool("update", false, "write which tests there are into docs/cases.md")

var (
	caseOfTest   = regexp.MustCompile(`^TestCase(\d+)_`)
	caseOfScript = regexp.MustCompile(`^case(\d+)_.*\.txt$`)
	casesOfText  = regexp.MustCompile(`\b[Cc]ases?\s+(\d+(?:(?:,\s+|\s+and\s+)\d+)*)`)
	numbers      = regexp.MustCompile(`\d+`)

	rowOfCase    = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \|$`)
	rowInPart    = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|$`)
	rowOfScene   = regexp.MustCompile("(?m)^\\| ([^|\\d][^|]*) \\| (`[^|]*) \\|$")
	namesOfTests = regexp.MustCompile("`([^`]+)`: (`[^`]+`(?:, `[^`]+`)*)")
	rowOfWhy     = regexp.MustCompile(`(?m)^\| ([^|\d][^|]*) \| (\d+(?:, \d+)*) \|$`)
)

// testsOf are the tests of each case: by folder, the names of functions, or the beginning of those of scripts. All
// functions are those of case 0.
type testsOf map[int]map[string][]string

func (t testsOf) add(number, folder, name string) {
	n, _ := strconv.Atoi(number)
	if t[n] == nil {
		t[n] = map[string][]string{}
	}
	if !slices.Contains(t[n][folder], name) {
		t[n][folder] = append(t[n][folder], name)
	}
}

// read adds the cases of a file. name is its path from the module's root; source is nil unless it is a test in Go.
func (t testsOf) read(name string, source []byte) error {
	folder, base := path.Split(name)
	folder = path.Clean(folder)
	if found := caseOfScript.FindStringSubmatch(base); found != nil {
		t.add(found[1], folder, "case"+found[1]+"_*")
		return nil
	}
	if source == nil {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	isTest := regexp.MustCompile(`^(Test|Fuzz|Benchmark)`).MatchString
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			t.add("0", folder, f.Name.Name)
			if found := caseOfTest.FindStringSubmatch(f.Name.Name); found != nil {
				t.add(found[1], folder, f.Name.Name)
			}
		}
	}
	for _, comment := range file.Comments {
		for _, found := range casesOfText.FindAllStringSubmatch(comment.Text(), -1) {
			at := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
				f, ok := d.(*ast.FuncDecl)
				return ok && isTest(f.Name.Name) && (f.Doc == comment || f.Pos() <= comment.Pos() && comment.End() <= f.End())
			})
			if at < 0 {
				return fmt.Errorf("%s: %q stands at no test", set.Position(comment.Pos()), found[0])
			}
			for _, number := range numbers.FindAllString(found[1], -1) {
				t.add(number, folder, file.Decls[at].(*ast.FuncDecl).Name.Name)
			}
		}
	}
	return nil
}

// text is what the page says of a case's tests.
func (t testsOf) text(number int) string {
	var parts []string
	for _, folder := range slices.Sorted(maps.Keys(t[number])) {
		names := slices.Sorted(slices.Values(t[number][folder]))
		parts = append(parts, fmt.Sprintf("`%s`: `%s`", folder, strings.Join(names, "`, `")))
	}
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, "; ")
}

// faults reports what a page says that isn't so.
func (t testsOf) faults(text string) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	rows, excused := map[int]bool{}, map[int]bool{}
	for _, row := range rowOfWhy.FindAllStringSubmatch(text, -1) {
		for _, number := range numbers.FindAllString(row[2], -1) {
			n, _ := strconv.Atoi(number)
			if excused[n] {
				report("case %d: two reasons for why there is no test", n)
			}
			excused[n] = true
		}
	}
	for _, row := range rowOfCase.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(row[1])
		switch want := t.text(n); {
		case rows[n]:
			report("case %d: stands twice", n)
		case row[3] != want:
			report("case %d: the page says %s, the tests are %s: go test ./cmd -run TestCases -update", n, row[3], want)
		case t[n] == nil && !excused[n]:
			report("case %d: neither a test nor a reason", n)
		case t[n] != nil && excused[n]:
			report("case %d: a test, and a reason for why there is none", n)
		}
		rows[n] = true
	}
	for _, row := range rowInPart.FindAllStringSubmatch(text, -1) {
		if n, _ := strconv.Atoi(row[1]); t[n] == nil {
			report("case %d: tested in part, and has no test", n)
		}
	}
	for _, row := range rowOfScene.FindAllStringSubmatch(text, -1) {
		named := namesOfTests.FindAllStringSubmatch(row[2], -1)
		if named == nil {
			report("%s: no test is named", row[1])
		}
		for _, at := range named {
			for _, name := range strings.Split(strings.Trim(at[2], "`"), "`, `") {
				if !slices.Contains(t[0][at[1]], name) {
					report("%s: %s has no %s", row[1], at[1], name)
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(t)) {
		if n > 0 && !rows[n] {
			report("case %d: has tests, and isn't on the page: %s", n, t.text(n))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(excused)) {
		if !rows[n] {
			report("case %d: has a reason, and isn't on the page", n)
		}
	}
	return found
}

// TestCases holds docs/cases.md against the tests that there are.
func TestCases(t *testing.T) {
	tests := testsOf{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() {
			if name != ".." && strings.HasPrefix(base, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel("..", name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		var source []byte
		if strings.HasSuffix(rel, "_test.go") && rel != "cmd/cases_test.go" {
			if source, err = os.ReadFile(name); err != nil {
				return err
			}
		}
		if err := tests.read(rel, source); err != nil {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(casesPage)
	if err != nil {
		t.Fatal(err)
	}
	if *updateCases {
		text = rowOfCase.ReplaceAllFunc(text, func(row []byte) []byte {
			cells := rowOfCase.FindSubmatch(row)
			n, _ := strconv.Atoi(string(cells[1]))
			return fmt.Appendf(nil, "| %d | %s | %s |", n, cells[2], tests.text(n))
		})
		if err := os.WriteFile(casesPage, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range tests.faults(string(text)) {
		t.Error(fault)
	}
}

// TestCasesNoticePlantedFaults holds the check itself.
func TestCasesNoticePlantedFaults(t *testing.T) {
	const source = `package p
func TestCase001_First(t *testing.T) {}
// Cases 2 and 3, in the doc.
func TestMany(t *testing.T) {
	_ = 0 // case 4
	switch { case 7 > 8: }
}
`
	tests := testsOf{}
	if err := tests.read("a/b/some_test.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	if err := tests.read("a/testdata/case001_x.txt", nil); err != nil {
		t.Fatal(err)
	}
	if err := (testsOf{}).read("a/other_test.go", []byte("package p\n// case 9\nvar x int\n")); err == nil {
		t.Error("a comment at no test isn't told")
	}
	const right = "| 1 | one | `a/b`: `TestCase001_First`; `a/testdata`: `case001_*` |\n| 2 | two | `a/b`: `TestMany` |\n" +
		"| 3 | three | `a/b`: `TestMany` |\n| 4 | four | `a/b`: `TestMany` |\n| 5 | five | – |\n| because | 5 |\n| 2 | a part |\n| scene | `a/b`: `TestMany`, `TestCase001_First` |\n"
	for _, c := range []struct {
		old, now string
		faults   int
	}{
		{"", "", 0},
		{"; `a/testdata`: `case001_*`", "", 1},
		{"| – |", "| `a/b`: `TestMany` |", 1},
		{"| because | 5 |\n", "", 1},
		{"| because | 5 |", "| because | 4, 5 |", 1},
		{"| because | 5 |", "| because | 5 |\n| and so | 5 |", 1},
		{"| because | 5 |", "| because | 5, 6 |", 1},
		{"| 2 | a part |", "| 5 | a part |", 1},
		{"`TestMany`, `TestCase001_First`", "`TestMany`, `TestFew`", 1},
		{"| scene | `a/b`", "| scene | `a/c`", 2},
		{"`TestMany`, `TestCase001_First`", "`TestMany", 1},
		{"| 4 | four | `a/b`: `TestMany` |\n", "", 1},
		{"| 5 | five | – |\n", "| 5 | five | – |\n| 5 | five | – |\n", 1},
	} {
		if found := tests.faults(strings.Replace(right, c.old, c.now, 1)); len(found) != c.faults {
			t.Errorf("%q for %q: %q, want %d", c.now, c.old, found, c.faults)
		}
	}
}
