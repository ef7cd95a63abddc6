package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every target says whose bytes it decodes.
func TestTargetsAreListed(t *testing.T) {
	all, err := targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := parseKinds(kindsText)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlisted(all, kinds); err != nil {
		t.Error(err)
	}
	if len(all) < 100 {
		t.Errorf("%d targets", len(all))
	}
	all = append(all, target{pkg: "linktrial/a", name: "FuzzNew"})
	if err := unlisted(all, kinds); err == nil || !strings.Contains(err.Error(), "a.FuzzNew") {
		t.Errorf("a new target: %v", err)
	}
	if err := unlisted(all[:1], kinds); err == nil || !strings.Contains(err.Error(), "no fuzz target") {
		t.Errorf("targets that are gone: %v", err)
	}
}

func TestParseKinds(t *testing.T) {
	for text, want := range map[string]string{
		"remote a.FuzzX # b\n\nlocal a.FuzzY\n": "",
		"near a.FuzzX":                          "expected remote or local",
		"remote":                                "expected remote or local",
		"remote a.FuzzX\nlocal a.FuzzX":         "listed twice",
	} {
		if _, err := parseKinds(text); fmt.Sprint(err) == "<nil>" != (want == "") || (want != "" && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Turns one after the other reach every target, each as often as the others.
func TestTurns(t *testing.T) {
	var all []target
	for i := range 10 {
		all = append(all, target{pkg: "linktrial/p", name: fmt.Sprint("Fuzz", i)})
	}
	c := selection{each: time.Minute, total: 3 * time.Minute, only: regexp.MustCompile("")}
	ran := map[string]int{}
	for c.turn = 7; c.turn < 17; c.turn++ {
		list, err := chosen(all, nil, c)
		if err != nil || len(list) != len(all) {
			t.Fatal(list, err)
		}
		for _, x := range list[:3] {
			ran[x.name]++
		}
	}
	for _, x := range all {
		if ran[x.name] != 3 {
			t.Errorf("%s ran %d times in ten turns of three", x, ran[x.name])
		}
	}
	for _, n := range []int{1, 7, 72, 73} {
		first := map[int]bool{}
		for turn := range n {
			first[turn*step(12, n)%n] = true
		}
		if len(first) != n {
			t.Errorf("%d turns begin with %d of %d targets", n, len(first), n)
		}
	}
	c.remote = true
	if list, err := chosen(all, map[string]string{"p.Fuzz4": remote, "p.Fuzz5": local}, c); err != nil || len(list) != 1 || list[0].name != "Fuzz4" {
		t.Error(list, err)
	}
	c.only = regexp.MustCompile("none")
	if _, err := chosen(all, nil, c); err == nil {
		t.Error("nothing was chosen, without an error")
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		c    selection
		used time.Duration
		left int
		want time.Duration
	}{
		{selection{each: time.Minute}, time.Hour, 5, time.Minute},
		{selection{total: time.Hour}, 0, 60, time.Minute},
		{selection{total: time.Hour}, 50 * time.Minute, 20, 30 * time.Second},
		{selection{total: time.Hour}, 2 * time.Hour, 20, least},
		{selection{total: 10 * time.Minute, each: time.Minute}, 9 * time.Minute, 20, time.Minute},
		{selection{total: 10 * time.Minute, each: time.Minute}, 10*time.Minute - 40*time.Second, 20, 40 * time.Second},
		{selection{total: 10 * time.Minute, each: time.Minute}, 10*time.Minute - 20*time.Second, 20, 0},
	} {
		if got := share(c.c, c.used, c.left); got != c.want {
			t.Errorf("%+v after %s: %s, expected %s", c.c, c.used, got, c.want)
		}
	}
}

// A few small inputs over the range of sizes are kept, and those that are kept already
// are counted.
func TestKeepInputs(t *testing.T) {
	from, x := t.TempDir(), target{pkg: "linktrial/p", dir: t.TempDir(), name: "FuzzX"}
	for i := range 20 {
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(filepath.Join(from, fmt.Sprint(name, i)), make([]byte, 30*i+10), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct{ most, added int }{{4, 4}, {5, 1}, {5, 0}} {
		if n, err := keepInputsOf(x, from, c.most); err != nil || n != c.added {
			t.Errorf("%d of at most %d, %v", n, c.most, err)
		}
	}
	kept, err := os.ReadDir(filepath.Join(x.dir, "testdata", "fuzz", "FuzzX"))
	if err != nil || len(kept) != 5 {
		t.Fatal(kept, err)
	}
	sizes := map[int64]bool{}
	for _, e := range kept {
		info, err := e.Info()
		if err != nil || info.Size() > maxInput {
			t.Errorf("%s: %v", e.Name(), err)
		}
		sizes[info.Size()] = true
	}
	if len(sizes) != 5 {
		t.Errorf("%d sizes of 5 inputs", len(sizes))
	}
	if n, err := keepInputsOf(x, filepath.Join(from, "none"), 9); n != 0 || err != nil {
		t.Errorf("of a target that never ran: %d, %v", n, err)
	}
	// Archives have no small inputs.
	archives, y := t.TempDir(), target{pkg: "linktrial/p", dir: t.TempDir(), name: "FuzzY"}
	for name, size := range map[string]int{"a": 3 * maxInput, "b": 4 * maxInput, "c": 2 * maxLarge} {
		if err := os.WriteFile(filepath.Join(archives, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := keepInputsOf(y, archives, 9); n != 2 || err != nil {
		t.Errorf("of large inputs %d were kept, %v", n, err)
	}
}

func TestDeclared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a_test.go")
	text := "package a\n\nimport \"testing\"\n\nfunc FuzzOne(f *testing.F) {}\nfunc TestTwo(t *testing.T) {}\n\ntype x struct{}\n\nfunc (x) FuzzMethod() {}\nfunc FuzzThree(f *testing.F) {}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := declared(file)
	if err != nil || !slices.Equal(got, []string{"FuzzOne", "FuzzThree"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestEndedLate(t *testing.T) {
	late := "fuzz: elapsed: 4s, execs: 43792 (10505/sec), new interesting: 91 (total: 93)\n--- FAIL: FuzzX (4.07s)\n    context deadline exceeded\nFAIL\n"
	if !endedLate(late) || endedLate(late+"    Failing input written to testdata/fuzz/FuzzX/1\n") || endedLate("--- FAIL: FuzzX\n") {
		t.Error("a finding is not told from a deadline")
	}
}

func TestOutcome(t *testing.T) {
	out := "fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1\nfuzz: elapsed: 6s, execs: 250 (50/sec), new interesting: 1\nPASS\n"
	if got := outcome(out, nil); got != "ok, 250 inputs" {
		t.Errorf("%q", got)
	}
	if got := outcome(out, os.ErrInvalid); got != "FAILED" {
		t.Errorf("%q", got)
	}
}

// What a target's time is for is running inputs: the search for shorter ones is bounded by
// runs, not by Go's minute.
func TestMinimisingIsBounded(t *testing.T) {
	b := binaries{parallel: 1, cache: "/cache"}
	args := b.arguments(target{pkg: "linktrial/p", name: "FuzzX"}, 12*time.Second)
	for _, want := range []string{"-test.fuzz=^FuzzX$", "-test.fuzztime=12s", "-test.fuzzminimizetime=100x", "-test.parallel=1", "-test.fuzzcachedir=/cache/linktrial/p"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s: %q", want, args)
		}
	}
}

// A target that has run next to nothing is named: "nothing found" would be no evidence.
func TestHardlyFuzzed(t *testing.T) {
	for out, want := range map[string]int{"fuzz: elapsed: 13s, execs: 3 (0/sec)\nPASS\n": 3, "fuzz: elapsed: 3s, execs: 9 (3/sec)\nfuzz: elapsed: 6s, execs: 120 (40/sec)\n": 120} {
		if n, ok := inputs(out); n != want || !ok {
			t.Errorf("%q: %d, %t", out, n, ok)
		}
	}
	if _, ok := inputs("PASS\n"); ok {
		t.Error("no number counts as one")
	}
}

// What a gate finds is in its log: its checkout is gone when somebody reads that.
func TestFailingInputIsPrinted(t *testing.T) {
	x := target{pkg: "linktrial/p", dir: t.TempDir(), name: "FuzzX"}
	const name = "testdata/fuzz/FuzzX/0a1b2c"
	const out = "--- FAIL: FuzzX (0.01s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n    Failing input written to " + name + "\n    To re-run:\n    go test -run=FuzzX/0a1b2c\nFAIL\n"
	if got := failing(x, out); !strings.Contains(got, "cannot be read") {
		t.Errorf("%q", got)
	}
	path := filepath.Join(x.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const input = "go test fuzz v1\n[]byte(\"\\x00\")\n"
	write(input)
	if got, want := failing(x, out), "--- "+name+" of linktrial/p\n"+input+"--- its end\n"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	write(strings.Repeat("x", maxPrinted+1))
	if got := failing(x, out); !strings.Contains(got, "65537 bytes and is not printed") {
		t.Errorf("%.200q", got)
	}
	if got := failing(x, "PASS\n"); got != "" {
		t.Errorf("%q", got)
	}
}
