package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChangedTests(t *testing.T) {
	dir := t.TempDir()
	p := goPackage{ImportPath: "m/a", Dir: dir, TestGoFiles: []string{"help_test.go", "kind_test.go", "one_test.go", "two_test.go"}}
	p.Module.Path = "m"
	const head = "package a\n"
	for name, text := range map[string]string{
		"help_test.go": head + "func help() {}",
		"kind_test.go": head + "var _ = testkind.OfPackage(testkind.RealTime, \"r\")",
		"one_test.go":  head + "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { testkind.OfTest(t, testkind.Soak, \"r\") }",
		"two_test.go":  head + "func TestC(t *testing.T) { testkind.OfTest(t, testkind.Exact, \"r\") }",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.Tests, err = readTests(p); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files, want []string // the units of what has changed
	}{
		"nothing":               {nil, nil},
		"no test file":          {[]string{"a/a.go", "one_test.go", "b/one_test.go"}, nil},
		"without those of soak": {[]string{"a/one_test.go"}, []string{"a TestA"}},
		"of another kind":       {[]string{"a/two_test.go"}, []string{"a TestC"}},
		"of two files":          {[]string{"a/one_test.go", "a/two_test.go"}, []string{"a TestC", "a TestA"}},
		"a helper":              {[]string{"a/help_test.go"}, []string{"a TestC", "a TestA"}},
	} {
		t.Run(name, func(t *testing.T) {
			changed, err := changedTests([]goPackage{p}, c.files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range repeatedUnits(changed, []kind{exact, realTime}, goPackage.name) {
				got = append(got, u.label)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

// A test that fails at every second time is told with how often, and is red.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	const line = `{"Action":"run","Package":"m/a","Test":"TestA"}
{"Action":"WORD","Package":"m/a","Test":"TestA","Elapsed":2}
{"Action":"WORD","Package":"m/a","Elapsed":2}
`
	for _, word := range []string{"pass", "fail"} {
		if err := os.WriteFile(filepath.Join(dir, word), []byte(strings.ReplaceAll(line, "WORD", word)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	g := &gate{results: newResults(&out)}
	u := unit{pkg: "m/a", dir: dir, limit: testLimit, label: "a TestA", command: []string{"sh", "-c",
		"if [ -e failed ]; then cat pass; rm failed; else cat fail; touch failed; exit 1; fi"}}
	g.repeat(t.Context(), []unit{u}, 5)
	g.printRepeated(&out)
	for _, want := range []string{"round 1 of 5 (alone): 1 of 1", "round 2 of 5 (beside a busy processor): 1 of 1", "passed 2, failed 3, 2.0 s on average"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if !g.judge(nil, nil).red() {
		t.Error("three failures are not red")
	}
}
