package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

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
