package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func TestPackagesUnderTheRaceDetector(t *testing.T) {
	all, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	race := map[string]bool{}
	for _, p := range all {
		race[p.name()] = p.Race
	}
	for name, want := range map[string]bool{"executor": true, "orchestrator/campaign": true, "lab/uml": false, "internal/unit": false} {
		if got, ok := race[name]; !ok || got != want {
			t.Errorf("%s under the race detector: %v, expected %v", name, got, want)
		}
	}
}

// A row of withoutRace that names a package that was renamed, or that lost its
// goroutines, would hide the reason for nothing.
func TestWithoutRaceHasNoStaleRow(t *testing.T) {
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	for name, reason := range withoutRace {
		i := slices.IndexFunc(all, func(p goPackage) bool { return p.name() == name })
		if i < 0 {
			t.Errorf("%s does not exist: rename or remove its row", name)
			continue
		}
		if c, err := concurrent(all[i]); err != nil {
			t.Error(err)
		} else if !c {
			t.Errorf("%s starts no goroutine and has no lock: remove its row", name)
		}
		if reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}

// Tests that start processes, shape traffic, or wait in real time are not exact unless
// their package says that they are, and why.
func TestKindsAreSaid(t *testing.T) {
	all, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Tests.said {
			continue
		}
		for _, name := range p.testFiles() {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if what := notExact(file); what != "" {
				t.Errorf("%s/%s has %s: say the kind of its tests with testkind.OfPackage (internal/testkind)", p.name(), name, what)
			}
		}
	}
}

// notExact is what in a file of tests needs a word about their kind, or nothing.
func notExact(file *ast.File) string {
	paths := map[string]bool{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		paths[path] = true
	}
	for _, path := range []string{"os/exec", "linktrial/lab/netns", "linktrial/internal/process", "linktrial/internal/process/processtest", "linktrial/internal/namespace", "linktrial/internal/namespace/namespacetest", "linktrial/internal/enginetest"} {
		if paths[path] {
			return path
		}
	}
	found := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && !paths["testing/synctest"] {
			for _, name := range []string{"Sleep", "After", "NewTimer", "NewTicker"} {
				if isSelector(call.Fun, "time", name) {
					found = "time." + name
				}
			}
		}
		return found == ""
	})
	return found
}

func TestNotExact(t *testing.T) {
	for src, want := range map[string]string{
		"package p\nimport \"os/exec\"":                                                  "os/exec",
		"package p\nimport \"time\"\nfunc f() { time.Sleep(1) }":                         "time.Sleep",
		"package p\nimport (\"time\"; \"testing/synctest\")\nfunc f() { time.Sleep(1) }": "",
		"package p\nimport \"time\"\nfunc f() { time.Now() }":                            "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p_test.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := notExact(file); got != want {
			t.Errorf("%q, expected %q, of:\n%s", got, want, src)
		}
	}
}

func TestIsConcurrent(t *testing.T) {
	for src, want := range map[string]bool{
		"package p\nfunc f() { go f() }":                          true,
		"package p\nimport _ \"sync\"":                            true,
		"package p\nimport _ \"sync/atomic\"":                     true,
		"package p\nimport _ \"golang.org/x/sync/errgroup\"":      true,
		"package p\nimport _ \"context\"\n// go f()\nfunc f() {}": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := isConcurrent(file); got != want {
			t.Errorf("isConcurrent is %v, expected %v, of:\n%s", got, want, src)
		}
	}
}
