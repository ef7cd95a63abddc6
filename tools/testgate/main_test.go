package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/testkind"
)

const (
	passes = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":3.5}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":3.4}
{"Action":"pass","Package":"p","Elapsed":4.2}
`
	fails = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: got 1, expected 2\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":1}
`
	subtest = `{"Action":"output","Package":"p","Test":"TestS/one","Output":"    s_test.go:9: no\n"}
{"Action":"fail","Package":"p","Test":"TestS/one","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestS","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":1}
`
	skips = `{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
`
	parallel = `{"Time":"2026-01-02T03:04:00Z","Action":"run","Package":"p","Test":"TestP"}
{"Time":"2026-01-02T03:04:05Z","Action":"pause","Package":"p","Test":"TestP"}
{"Time":"2026-01-02T03:05:00Z","Action":"cont","Package":"p","Test":"TestP"}
{"Time":"2026-01-02T03:05:01Z","Action":"run","Package":"p","Test":"TestP/one"}
{"Time":"2026-01-02T03:05:21.5Z","Action":"pass","Package":"p","Test":"TestP/one","Elapsed":20.5}
{"Time":"2026-01-02T03:05:22Z","Action":"pass","Package":"p","Test":"TestP","Elapsed":0.01}
`
	broken = `{"Action":"build-output","ImportPath":"q","Output":"q.go:1: no\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"fail","Package":"q","Elapsed":0,"FailedBuild":"q"}
`
	unfinished = `{"Action":"output","Package":"p","Test":"TestH","Output":"panic: test timed out after 1s\n"}
{"Action":"fail","Package":"p","Elapsed":3}
`
	crashes = `{"Action":"output","Package":"p","Test":"TestB","Output":"panic: no\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":1}
`
)

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		red  bool
		want []string
		last string
	}{
		"all pass":         {passes, false, []string{"slow  package     4.2 s  p\n", "slow  test        3.5 s  p/TestA\n"}, "2 passed, 0 failed, 0 skipped\n"},
		"two runs":         {passes + passes, false, nil, "4 passed, 0 failed, 0 skipped\n"},
		"a failure":        {passes + fails, true, []string{"FAILED: 1\n  p/TestB (0.0 s)\n    b_test.go:3: got 1, expected 2\n"}, "2 passed, 1 failed, 0 skipped\n"},
		"a subtest":        {passes + subtest, true, []string{"FAILED: 1\n  p/TestS/one (0.0 s)\n    s_test.go:9: no\n"}, "2 passed, 1 failed, 0 skipped\n"},
		"an expected skip": {passes + skips, false, []string{"skip  p/TestC: expected: c_test.go:3: needs root"}, "2 passed, 0 failed, 1 skipped\n"},
		"another skip":     {passes + strings.ReplaceAll(skips, "TestC", "TestD"), true, []string{"skip  p/TestD: NOT EXPECTED"}, "2 passed, 0 failed, 1 skipped\n"},
		"a broken build":   {passes + broken, true, []string{"q.go:1: no", "FAILED: 1\n  q ("}, "2 passed, 1 failed, 0 skipped\n"},
		"a listed failure": {passes + strings.ReplaceAll(fails, "TestB", "TestL"), false, []string{"unsteady.txt): 1\n  p/TestL"}, "2 passed, 0 failed, 0 skipped\n"},
		"a crash":          {passes + unfinished, true, []string{"FAILED: 1\n  p (3.0 s)\n    not finished: p/TestH\n"}, "2 passed, 1 failed, 0 skipped\n"},
		"text between":     {"vet: something\n" + passes, false, []string{"vet: something\n"}, "2 passed, 0 failed, 0 skipped\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := newResults(&out)
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			v := r.judge(map[string]bool{"p/TestC": true}, map[string]bool{"p/TestL": true})
			r.print(v, &out)
			if v.red() != c.red {
				t.Errorf("red is %v, expected %v", v.red(), c.red)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
			if !strings.HasSuffix(out.String(), c.last) {
				t.Errorf("the last line is not %q:\n%s", c.last, out.String())
			}
		})
	}
}

func TestTableOfWhatRan(t *testing.T) {
	r := newResults(io.Discard)
	if err := r.read(strings.NewReader(passes + subtest + skips + parallel)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r.printRan(&out)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"ran p/TestP 22.0 s passed", "ran p/TestA 3.5 s passed", "ran p/TestC 0.0 s skipped", "ran p/TestS 0.0 s FAILED"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
}

// A test that passed alone each time is unsteady, and five of them leave the gate green;
// what failed again, what was not tried and what is never tried again is red.
func TestTriedAgain(t *testing.T) {
	passed, failed := attempt{passed: true}, attempt{}
	for name, c := range map[string]struct {
		again []attempt
		count int
		red   bool
	}{
		"passed twice":            {[]attempt{passed, passed}, 5, false},
		"six of them":             {[]attempt{passed, passed}, 6, true},
		"failed again":            {[]attempt{failed}, 1, true},
		"failed the second time":  {[]attempt{passed, failed}, 1, true},
		"there was time for one":  {[]attempt{passed}, 1, true},
		"there was time for none": {nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResults(os.Stdout)
			for i := range c.count {
				r.failures = append(r.failures, failure{pkg: "p", test: "Test" + string(rune('A'+i)), again: c.again})
			}
			if got := r.judge(nil, nil).red(); got != c.red {
				t.Errorf("red is %v, expected %v", got, c.red)
			}
		})
	}
}

func TestNeverTriedAgain(t *testing.T) {
	says := func(text string) string { return strings.ReplaceAll(crashes, "panic: no", text) }
	for name, in := range map[string]string{
		"a crash":                     crashes,
		"a finding of the audit":      says("    a_test.go:3: FINDING trial 3: no record"),
		"a lost trial":                says("    a_test.go:3: " + testkind.Decided + "trial 3 was lost"),
		"the race detector":           says("WARNING: DATA RACE"),
		"a sanitizer":                 says("==7==ERROR: AddressSanitizer: heap-use-after-free"),
		"a test that no load changes": strings.ReplaceAll(fails, "TestB", "TestExact"),
	} {
		t.Run(name, func(t *testing.T) {
			g := gate{results: newResults(&strings.Builder{}), all: []goPackage{{ImportPath: "p", Tests: testList{tests: map[string]kind{"TestExact": exact, "TestB": realTime}}}}}
			if err := g.read(strings.NewReader(in)); err != nil {
				t.Fatal(err)
			}
			g.tryAgain(t.Context(), nil)
			for _, f := range g.failures {
				if len(f.again) > 0 {
					t.Errorf("%s was tried again", f.name())
				}
			}
			if len(g.failures) == 0 || !g.judge(nil, nil).red() {
				t.Error("it is not red")
			}
		})
	}
}

// A test of processes that are ended has their signals in its failures, and may be late.
func TestFinalFailures(t *testing.T) {
	for text, want := range map[string]bool{
		"driver: exit signal: terminated":         false,
		"signal: killed":                          false,
		"driver: signal: segmentation fault":      true,
		"signal: aborted (core dumped)":           true,
		"    a_test.go:3: FINDING trial 3: twice": true,
		"no findings":                             false,
	} {
		if got := final.MatchString(text); got != want {
			t.Errorf("%q: final is %v, expected %v", text, got, want)
		}
	}
}

// Where something else keeps the machine busy, each test does not wait for as long as the
// first that waited in vain; and nothing lets the third one begin there.
func TestTurns(t *testing.T) {
	busy := false
	for i, c := range []struct {
		beside  int
		percent float64
		waited  time.Duration
		want    bool
	}{
		{1, 10, 0, true},
		{1, 60, 19 * time.Second, false},
		{1, 60, 21 * time.Second, true},
		{1, 60, time.Second, false},
		{1, 60, 3 * time.Second, true},
		{2, 60, time.Hour, false},
		{0, 60, 3 * time.Second, true},
		{2, 20, 0, true}, // it is no longer busy
		{3, 20, time.Hour, false},
		{3, 14, 0, true},
		{1, 60, 3 * time.Second, false},
	} {
		if got := computing[c.beside].met(c.percent, c.waited, &busy); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// What waits says so, in a package or in a test.
func TestWhatWaits(t *testing.T) {
	const src = "package p\nimport \"linktrial/internal/testkind\"\nvar _ = testkind.Waits(\"r\")\n" +
		"func TestA(t *testing.T) { testkind.Waits(\"r\") }\nfunc TestB(t *testing.T) { other.Waits(\"r\") }"
	for text, want := range map[string]map[string]bool{src: {"": true, "TestA": true}, strings.Replace(src, "var _ = testkind.Waits", "var _ = nobody.Waits", 1): {"TestA": true}} {
		f, err := parser.ParseFile(token.NewFileSet(), "p_test.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := kindsOf([]*ast.File{f}); err != nil || !maps.Equal(l.waits, want) {
			t.Errorf("%v (%v), expected %v", l.waits, err, want)
		}
	}
}

func TestKindsOf(t *testing.T) {
	const head = "package p\nimport \"linktrial/internal/testkind\"\n"
	for name, c := range map[string]struct {
		src  string
		want map[string]kind // and of the package, under ""
		bad  bool
	}{
		"nothing said":  {head + "func TestA(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\nfunc Testing() {}", map[string]kind{"": exact, "TestA": exact}, false},
		"of a package":  {head + "var _ = testkind.OfPackage(testkind.RealTime, \"r\")\nfunc TestA(t *testing.T) {}", map[string]kind{"": realTime, "TestA": realTime}, false},
		"of a test":     {head + "var _ = testkind.OfPackage(testkind.RealTime, \"r\")\nfunc TestA(t *testing.T) { testkind.OfTest(t, testkind.Soak, \"r\") }\nfunc TestB(t *testing.T) {}", map[string]kind{"": realTime, "TestA": soak, "TestB": realTime}, false},
		"not written":   {head + "var k = testkind.Soak\nfunc TestA(t *testing.T) { testkind.OfTest(t, k, \"r\") }", nil, true},
		"twice":         {head + "var _ = testkind.OfPackage(testkind.Soak, \"r\")\nvar _ = testkind.OfPackage(testkind.Soak, \"r\")", nil, true},
		"another thing": {head + "func TestA(t *testing.T) { other.OfTest(t, testkind.Soak, \"r\") }", map[string]kind{"": exact, "TestA": exact}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "p_test.go", c.src, 0)
			if err != nil {
				t.Fatal(err)
			}
			l, err := kindsOf([]*ast.File{f})
			if (err != nil) != c.bad {
				t.Fatalf("error %v", err)
			}
			if c.bad {
				return
			}
			got := maps.Clone(l.tests)
			got[""] = l.kind
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, expected %v", got, c.want)
			}
		})
	}
}

// Each test of a package runs in one place: as an exact one, in real time, or in a soak.
func TestEveryTestRunsOnce(t *testing.T) {
	p := goPackage{ImportPath: "m/p", Tests: testList{kind: realTime, tests: map[string]kind{"TestA": realTime, "TestB": exact, "TestC": soak, "TestD": realTime}}}
	binary := func(goPackage) string { return "p.test" }
	own := unitsOf([]goPackage{p}, realTime, binary)
	if len(own) != 1 || !slices.Contains(own[0].command, "-test.skip=^(TestB|TestC)$") {
		t.Errorf("in real time: %v", own)
	}
	if u := unitsOf([]goPackage{p}, soak, binary); len(u) != 1 || !slices.Contains(u[0].command, "-test.run=^(TestC)$") {
		t.Errorf("in a soak: %v", u)
	}
	p.ImportPath, p.Tests.waits = "e2e", map[string]bool{"TestD": true}
	if u := unitsOf([]goPackage{p}, realTime, binary); len(u) != 2 || !slices.Contains(u[1].command, "-test.run=^(TestD)$") || u[0].waits || !u[1].waits {
		t.Errorf("apart: %v", u)
	}
	p.ImportPath, p.Tests.waits = "m/p", map[string]bool{"": true}
	if u := unitsOf([]goPackage{p}, realTime, binary); len(u) != 1 || !u[0].waits {
		t.Errorf("of a package that waits: %v", u)
	}
	race, plain, parts := exactTests([]goPackage{
		p,
		{ImportPath: "m/race", Race: true, Tests: testList{kind: exact, tests: map[string]kind{"TestA": exact}}},
		{ImportPath: "m/plain", Tests: testList{kind: exact, tests: map[string]kind{"TestA": exact}}},
		{ImportPath: "m/mixed", Tests: testList{kind: exact, tests: map[string]kind{"TestA": exact, "TestB": realTime}}},
		{ImportPath: "m/seeds", Tests: testList{kind: exact, tests: map[string]kind{}}},
		{ImportPath: "m/real", Tests: testList{kind: realTime, tests: map[string]kind{"TestA": realTime}}},
	})
	if !slices.Equal(race, []string{"m/race"}) || !slices.Equal(plain, []string{"m/plain", "m/seeds"}) {
		t.Errorf("with the race detector %v, without %v", race, plain)
	}
	if len(parts) != 2 || !slices.Equal(parts[0].args, []string{"-run", "^(TestB)$"}) || !slices.Equal(parts[1].args, []string{"-skip", "^(TestB)$"}) {
		t.Errorf("in parts: %+v", parts)
	}
}

func TestSpread(t *testing.T) {
	named := func(labels ...string) (out []unit) {
		for _, l := range labels {
			out = append(out, unit{label: l})
		}
		return out
	}
	for _, c := range []struct{ units, pages, want []unit }{
		{named("1", "2", "3", "4", "5"), named("a", "b"), named("a", "1", "2", "b", "3", "4", "5")},
		{named("1"), named("a", "b"), named("a", "b", "1")},
		{named("1"), nil, named("1")},
		{nil, named("a"), named("a")},
	} {
		got := spread(c.units, c.pages)
		if !slices.EqualFunc(got, c.want, func(a, b unit) bool { return a.label == b.label }) {
			t.Errorf("got %v, expected %v", got, c.want)
		}
	}
}

// A name of the list of unsteady tests that no test has, or of the expected skips, would
// hide nothing, and be taken for a defect that is known.
func TestListsNameTests(t *testing.T) {
	all, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range all {
		for name := range p.Tests.tests {
			known[p.ImportPath+"/"+name] = true
		}
	}
	names, err := readNames("unsteady.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range names {
		if file, ok := strings.CutPrefix(name, "web/"); ok {
			if _, err := os.Stat(filepath.Join("..", "..", "web", file)); err != nil {
				t.Error(err)
			}
		} else if !known[name] {
			t.Errorf("unsteady.txt: no test %s", name)
		}
	}
}

func TestPressure(t *testing.T) {
	p := parsePressure("some avg10=12.50 avg60=3.00 avg300=1.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	if p.percent != 12.5 || p.total.Seconds() != 2.5 {
		t.Errorf("%+v", p)
	}
	if p := parsePressure("something else"); p.percent != 0 || p.total != 0 {
		t.Errorf("%+v", p)
	}
}

func TestFirstLine(t *testing.T) {
	for in, want := range map[string]string{
		"=== RUN TestA\n    a_test.go:3: got 1\n--- FAIL: TestA (0.00s)\n":                              "a_test.go:3: got 1",
		"    a_test.go:7: \n\tError Trace:\tp/a_test.go:7\n\tError:      \tCondition never satisfied\n": "a_test.go:7: Error:      \tCondition never satisfied",
		"AssertionError: no\n at web/tests/run.test.ts:12:3":                                            "web/tests/run.test.ts:12: AssertionError: no",
		"": "no word",
	} {
		if got := firstLine(in); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
