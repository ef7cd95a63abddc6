// Package testkind says in a test's own code which kind of test it is, and so where the
// gate runs it. tools/testgate reads these calls in the sources.
//
// A package says its kind once, at its top level:
//
//	var _ = testkind.OfPackage(testkind.RealTime, "starts agents as processes and kills them")
//
// A package that says nothing is Exact. A test of another kind than its package says so
// in its first line:
//
//	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
package testkind

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Kind is where a test runs.
type Kind int

const (
	// Exact tests are those whose result no load changes: pure code, code under
	// testing/synctest, runs in the virtual-time lab. They run beside each other and,
	// where the code has goroutines, under the race detector.
	Exact Kind = iota
	// RealTime tests need clocks, interfaces, containers, processes or browsers that
	// run in real time. They run after the exact ones, with nothing that compiles or
	// computes beside them.
	RealTime
	// Soak tests take long or draw at random. They are not in the gate: make soak runs
	// them.
	Soak
)

// Environment is set where soak tests are to run.
const Environment = "LINKTRIAL_SOAK"

// Decided stands in a failure that a second run does not take back.
const Decided = "no second run takes this back: "

// Failed fails a test for what must never happen, not even once: a lost or repeated
// trial, a finding of the audit, a difference of bytes. The gate does not try such a test
// again.
func Failed(t testing.TB, format string, a ...any) {
	t.Helper()
	t.Error(Decided + fmt.Sprintf(format, a...))
}

// OfPackage says the kind of all tests of a package that say none of their own. The
// reason is for people.
func OfPackage(_ Kind, _ string) struct{} { return struct{}{} }

// Waits says of a package's real-time tests, at its top level, or of one test in its body,
// that they wait for nearly all of their time: the gate runs them beside what computes. The
// reason is for people, and says for what they wait. The gate's log has the time of the
// processor that each took.
func Waits(_ string) struct{} { return struct{}{} }

// OfTest says the kind of a test, and skips it where it is a soak test and no soak is
// run. The reason is for people.
func OfTest(t testing.TB, kind Kind, reason string) {
	t.Helper()
	if kind == Soak && os.Getenv(Environment) == "" {
		t.Skipf("a soak test (%s): make soak runs it", reason)
	}
}

// AtOnce sets how many tests with t.Parallel run at once in a package whose tests mostly
// wait: go test takes as many as there are processors. A number that the command line
// gives stays. It is for TestMain, before m.Run.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
