package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kind is where a test runs, as internal/testkind has it.
type kind string

const (
	exact    kind = "Exact"
	realTime kind = "RealTime"
	soak     kind = "Soak"
)

// testList is what the sources of a package's tests say.
type testList struct {
	kind  kind            // of the package
	said  bool            // by the package itself
	tests map[string]kind // each function whose name begins with Test
	waits map[string]bool // those that say so, and "" where the package does
}

// of returns the tests of a kind, in the order of their names.
func (l testList) of(k kind) []string {
	var out []string
	for name, own := range l.tests {
		if own == k {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// only reports whether all tests are of the package's kind.
func (l testList) only() bool { return len(l.of(l.kind)) == len(l.tests) }

// exactly is a regular expression for these names and no others.
func exactly(names ...string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// readTests reads which tests a package has, and their kinds.
func readTests(p goPackage) (testList, error) {
	var files []*ast.File
	for _, name := range p.testFiles() {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return testList{}, err
		}
		files = append(files, f)
	}
	l, err := kindsOf(files)
	if err != nil {
		return l, fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	return l, nil
}

func kindsOf(files []*ast.File) (testList, error) {
	l := testList{tests: map[string]kind{}, waits: map[string]bool{}}
	var bad error
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				if calls(d, "Waits") {
					l.waits[""] = true
				}
				k, err := said(d, "OfPackage", 0)
				switch {
				case err != nil:
					bad = err
				case k != "" && l.kind != "":
					bad = errors.New("testkind.OfPackage stands twice")
				case k != "":
					l.kind, l.said = k, true
				}
			case *ast.FuncDecl:
				if !isTest(d) {
					continue
				}
				k, err := said(d, "OfTest", 1)
				if err != nil {
					bad = fmt.Errorf("%s: %w", d.Name.Name, err)
				}
				l.tests[d.Name.Name] = k
				if calls(d, "Waits") {
					l.waits[d.Name.Name] = true
				}
			}
		}
	}
	if l.kind == "" {
		l.kind = exact
	}
	for name, k := range l.tests {
		if k == "" {
			l.tests[name] = l.kind
		}
	}
	return l, bad
}

func isTest(d *ast.FuncDecl) bool {
	return d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") && d.Name.Name != "TestMain" &&
		d.Type.Params.NumFields() == 1
}

// said returns the kind that a call of testkind below a declaration names, the argument
// with this index, or nothing.
func said(d ast.Node, function string, argument int) (kind, error) {
	var out kind
	var bad error
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isSelector(call.Fun, "testkind", function) {
			return true
		}
		for _, k := range []kind{exact, realTime, soak} {
			if argument < len(call.Args) && isSelector(call.Args[argument], "testkind", string(k)) {
				out = k
				return true
			}
		}
		bad = fmt.Errorf("testkind.%s needs testkind.Exact, testkind.RealTime or testkind.Soak, written out", function)
		return true
	})
	return out, bad
}

// calls reports whether a function of testkind is called below a declaration.
func calls(d ast.Node, function string) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && isSelector(call.Fun, "testkind", function)
		return !found
	})
	return found
}

func isSelector(e ast.Expr, x, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == x
}
