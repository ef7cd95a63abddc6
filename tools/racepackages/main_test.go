package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestSplitHoldsEveryPackageOnce(t *testing.T) {
	race, plain, err := split()
	if err != nil {
		t.Fatal(err)
	}
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 || len(race)+len(plain) != len(all) {
		t.Errorf("%d packages with the race detector and %d without, of %d", len(race), len(plain), len(all))
	}
	for _, p := range all {
		if slices.Contains(race, p.ImportPath) == slices.Contains(plain, p.ImportPath) {
			t.Errorf("%s is in both lists or in none", p.ImportPath)
		}
	}
	for _, name := range []string{"linktrial/executor", "linktrial/orchestrator/campaign"} {
		if !slices.Contains(race, name) {
			t.Errorf("%s is not tested under the race detector", name)
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
